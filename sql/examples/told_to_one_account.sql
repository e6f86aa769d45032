-- What did we tell the account `anna`, and on what evidence? Each notice beside the version of the
-- entry that made it, and where that stands in the provider's file.
select
    i.payment_id,
    i.kind,
    i.state,
    i.entry_id,
    i.entry_version,
    e.entry_type,
    e.gross,
    e.currency,
    e.source,
    e.line_no
from duebook_reports.intents as i
left join duebook_reports.settlement_entries as e
    on
        i.provider_account = e.provider_account
        and i.entry_id = e.entry_id
        and i.entry_version = e.version
where i.account_id = 'anna'
order by i.payment_id, i.created_at, i.kind;
