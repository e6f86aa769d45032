-- name: fetch_ledger
-- What a dataframe compares a settlement file with: the current entries, as CSV.
copy (
    select
        e.entry_id,
        e.gross_minor,
        e.fee_minor,
        e.net_minor,
        e.currency,
        e.entry_status
    from duebook.settlement_entry as e
    where e.provider_account = 'bench'
) to stdout (format csv, header true);
