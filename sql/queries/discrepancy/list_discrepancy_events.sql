-- name: list_discrepancy_events
-- What runs found and people did with one discrepancy, oldest first.
select
    e.at,
    e.act,
    e.actor,
    e.reason,
    e.assignee,
    e.status_before,
    e.status_after,
    duebook.major_amount(e.provider_minor, e.currency, a.provider) as provider_amount,
    duebook.major_amount(e.ledger_minor, e.currency, a.provider) as ledger_amount,
    e.currency,
    e.run_id
from duebook.discrepancy_event as e
left join duebook.provider_account as a on e.provider_account = a.provider_account
where
    e.provider_account = :provider_account::text
    and e.kind = :kind::text
    and e.subject = :subject::text
order by e.event_id;
