-- name: open_discrepancies
-- Opens what is new, reopens what came back, updates what changed; what a person decided on stays
-- decided while its amounts do.
insert into duebook.discrepancy as d (
    provider_account, kind, subject, account_id, payment_id, batch_ref, entry_id, provider_minor,
    ledger_minor,
    currency,
    detail,
    severity,
    first_seen_at,
    last_seen_at,
    opened_run_id,
    last_run_id
)
select
    :provider_account,
    f.kind,
    f.subject,
    f.account_id,
    f.payment_id,
    f.batch_ref,
    f.entry_id,
    f.provider_minor,
    f.ledger_minor,
    f.currency,
    f.detail,
    f.severity,
    :as_of,
    :as_of,
    :run_id,
    :run_id
from finding as f
where
    not exists (
        select from duebook.discrepancy as o
        where
            o.provider_account = :provider_account
            and o.kind = f.kind
            and o.subject = f.subject
            and o.closed_at is null
            and o.status <> 'resolved'
            and (o.account_id, o.payment_id, o.provider_minor, o.ledger_minor, o.currency, o.detail)
            is not distinct from
            (f.account_id, f.payment_id, f.provider_minor, f.ledger_minor, f.currency, f.detail)
    )
order by f.kind, f.subject
on conflict (provider_account, kind, subject) do update
    set
        account_id = excluded.account_id,
        payment_id = excluded.payment_id,
        provider_minor = excluded.provider_minor,
        ledger_minor = excluded.ledger_minor,
        currency = excluded.currency,
        detail = excluded.detail,
        status = duebook.status_when_found(
            d, excluded.provider_minor, excluded.ledger_minor, excluded.currency
        ),
        last_seen_at = excluded.last_seen_at,
        closed_at = null,
        opened_run_id
        = case
            when d.closed_at is not null then excluded.opened_run_id
            else d.opened_run_id
        end,
        last_run_id = excluded.last_run_id,
        times_opened = d.times_opened + (d.closed_at is not null)::integer;
