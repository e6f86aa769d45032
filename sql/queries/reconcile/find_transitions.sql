-- name: find_transitions
-- Pending to missing, and back: findings of absence without an open discrepancy, and the reverse.
insert into transition (transition, account_id, payment_id)
select
    'missing',
    f.account_id,
    f.payment_id
from finding as f
left join duebook.discrepancy as d
    on
        d.provider_account = :provider_account
        and f.kind = d.kind
        and f.subject = d.subject
        and d.closed_at is null
where f.kind = 'missing_at_provider' and d.subject is null
union all
select
    'cleared',
    d.account_id,
    d.payment_id
from duebook.discrepancy as d
where
    d.provider_account = :provider_account
    and d.kind = 'missing_at_provider'
    and d.closed_at is null
    and (
        :is_full::boolean
        or exists (
            select from affected_payment as a
            where a.account_id = d.account_id and a.payment_id = d.payment_id
        )
    )
    and not exists (
        select from finding as f
        where f.kind = d.kind and f.subject = d.subject
    );
