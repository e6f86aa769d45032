-- name: put_budget
-- Writes the rate of one channel and says what changed. What is left of a pause stays. A rate that
-- is stated no more is taken out.
with before as (
    select
        b.capacity,
        b.refill_per_minute,
        b.slot_spacing
    from duebook.budget as b
    where b.channel = :channel
),

written as (
    insert into duebook.budget as b (channel, tokens, capacity, refill_per_minute, slot_spacing)
    select
        :channel,
        :capacity::integer,
        :capacity::integer,
        :refill_per_minute::integer,
        :slot_spacing::interval
    where :capacity::integer is not null or exists (select from before)
    on conflict (channel) do update
        set
            tokens = case
                when b.tokens is null or excluded.capacity is null then excluded.tokens
                else least(b.tokens, excluded.capacity)
            end,
            capacity = excluded.capacity,
            refill_per_minute = excluded.refill_per_minute,
            slot_spacing = excluded.slot_spacing
        where
        (b.capacity, b.refill_per_minute, b.slot_spacing)
        is distinct from
        (excluded.capacity, excluded.refill_per_minute, excluded.slot_spacing)
    returning b.capacity, b.refill_per_minute, b.slot_spacing
)

insert into duebook.audit_event (actor, action, subject, detail)
select
    :actor,
    'apply_budget',
    :channel,
    jsonb_build_object(
        'before', (select to_jsonb(b) from before as b),
        'after', to_jsonb(w)
    )
from written as w
returning case when detail -> 'before' = 'null' then 'added' else 'changed' end as change;
