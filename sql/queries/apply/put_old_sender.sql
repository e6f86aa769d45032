-- name: put_old_sender
-- Writes one old sender and says what changed.
with before as (
    select to_jsonb(s) - 'updated_at' as stated
    from duebook.old_sender as s
    where s.sender = :sender
),

written as (
    insert into duebook.old_sender as s (sender, asks, same_within, endpoint)
    values (:sender, :asks, :same_within::interval, :endpoint)
    on conflict (sender) do update
        set
            asks = excluded.asks,
            same_within = excluded.same_within,
            endpoint = excluded.endpoint,
            updated_at = clock_timestamp()
        where
        (s.asks, s.same_within, s.endpoint)
        is distinct from
        (excluded.asks, excluded.same_within, excluded.endpoint)
    returning to_jsonb(s) - 'updated_at' as stated
)

insert into duebook.audit_event (actor, action, subject, detail)
select
    :actor,
    'apply_old_sender',
    :sender,
    jsonb_build_object(
        'before', (select b.stated from before as b),
        'after', w.stated
    )
from written as w
returning case when detail -> 'before' = 'null' then 'added' else 'changed' end as change;
