-- name: note_discrepancies
-- One event for each discrepancy that this run opens, changes, reopens or closes; before the rows
-- themselves are written, whose status is the one before.
insert into duebook.discrepancy_event (
    provider_account, kind, subject, act, actor, assignee, status_before, status_after,
    provider_minor, ledger_minor, currency, run_id
)
select
    :provider_account,
    f.kind,
    f.subject,
    case
        when d.subject is null then 'opened'
        when d.closed_at is not null or d.status = 'resolved' then 'reopened'
        else 'changed'
    end,
    'reconcile',
    d.assignee,
    d.status,
    duebook.status_when_found(d, f.provider_minor, f.ledger_minor, f.currency),
    f.provider_minor,
    f.ledger_minor,
    f.currency,
    :run_id
from finding as f
left join duebook.discrepancy as d
    on d.provider_account = :provider_account and f.kind = d.kind and f.subject = d.subject
where
    d.subject is null
    or d.closed_at is not null
    or d.status = 'resolved'
    or (d.provider_minor, d.ledger_minor, d.currency)
    is distinct from
    (f.provider_minor, f.ledger_minor, f.currency)
union all
select
    :provider_account,
    d.kind,
    d.subject,
    'closed',
    'reconcile',
    d.assignee,
    d.status,
    case when d.status in ('ignored', 'written_off') then d.status else 'closed' end,
    d.provider_minor,
    d.ledger_minor,
    d.currency,
    :run_id
from gone_discrepancy as g
inner join duebook.discrepancy as d
    on d.provider_account = :provider_account and g.kind = d.kind and g.subject = d.subject;
