-- name: write_event_effects
-- What events led to, in the transaction that did it; each at most once, and off the queue. One
-- that was given up needs a person, so it is audited too.
with effect as (
    insert into duebook.event_effect (provider_account, event_id, effect, reason, run_id)
    select
        :provider_account,
        e.event_id,
        :effect,
        e.reason,
        :run_id
    from unnest(:event_ids::text[], :reasons::text[]) as e (event_id, reason)
    order by e.event_id
    on conflict do nothing
    returning event_id, effect, reason
),

audited as (
    insert into duebook.audit_event (actor, action, subject, detail)
    select
        'provider_events',
        'event_given_up',
        :provider_account,
        jsonb_build_object('event_id', e.event_id, 'reason', e.reason)
    from effect as e
    where e.effect = 'given_up'
)

delete from duebook.pending_event as p
where p.provider_account = :provider_account and p.event_id = any(:event_ids::text[]);
