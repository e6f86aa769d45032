-- name: fetch_entries
-- What a dataframe compares a settlement file with: the current entries, in the file's own form.
copy (
    select
        e.entry_id,
        e.provider_type,
        e.batch_ref,
        e.payment_ref,
        e.gross_minor,
        e.fee_minor,
        e.net_minor,
        e.currency,
        to_char(e.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as occurred,
        e.entry_status
    from duebook.settlement_entry as e
    where e.provider_account = 'bench'
) to stdout (format csv, header true);
