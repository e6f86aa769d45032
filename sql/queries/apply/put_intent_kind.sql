-- name: put_intent_kind
-- Writes one kind of notice with its policy, and says what changed.
with before as (
    select pg_catalog.to_jsonb(k) - 'updated_at' as stated
    from duebook.intent_kind as k
    where k.kind = :kind
),

written as (
    insert into duebook.intent_kind as k (
        kind,
        enabled,
        channel,
        notify_after,
        give_up_after,
        is_superseded,
        catch_up,
        catch_up_window,
        max_occurrences,
        spread_per_minute,
        max_tries,
        max_claims,
        may_unsubscribe,
        is_critical,
        digest_within,
        digest_most,
        fail_over
    )
    values (
        :kind,
        :enabled,
        :channel,
        :notify_after,
        :give_up_after,
        :is_superseded,
        :catch_up,
        :catch_up_window,
        :max_occurrences,
        :spread_per_minute,
        :max_tries,
        :max_claims,
        :may_unsubscribe,
        :is_critical,
        :digest_within,
        :digest_most,
        :fail_over
    )
    on conflict (kind) do update
        set
            enabled = excluded.enabled,
            channel = excluded.channel,
            notify_after = excluded.notify_after,
            give_up_after = excluded.give_up_after,
            is_superseded = excluded.is_superseded,
            catch_up = excluded.catch_up,
            catch_up_window = excluded.catch_up_window,
            max_occurrences = excluded.max_occurrences,
            spread_per_minute = excluded.spread_per_minute,
            max_tries = excluded.max_tries,
            max_claims = excluded.max_claims,
            may_unsubscribe = excluded.may_unsubscribe,
            is_critical = excluded.is_critical,
            digest_within = excluded.digest_within,
            digest_most = excluded.digest_most,
            fail_over = excluded.fail_over,
            updated_at = clock_timestamp()
        where
        (
            k.enabled, k.channel, k.notify_after, k.give_up_after, k.is_superseded, k.catch_up,
            k.catch_up_window, k.max_occurrences, k.spread_per_minute, k.max_tries, k.max_claims,
            k.may_unsubscribe, k.is_critical, k.digest_within, k.digest_most, k.fail_over
        )
        is distinct from
        (
            excluded.enabled, excluded.channel, excluded.notify_after, excluded.give_up_after,
            excluded.is_superseded, excluded.catch_up, excluded.catch_up_window,
            excluded.max_occurrences, excluded.spread_per_minute, excluded.max_tries,
            excluded.max_claims, excluded.may_unsubscribe, excluded.is_critical,
            excluded.digest_within, excluded.digest_most, excluded.fail_over
        )
    returning pg_catalog.to_jsonb(k) - 'updated_at' as stated
)

insert into duebook.audit_event (actor, action, subject, detail)
select
    :actor,
    'apply_kind',
    :kind,
    pg_catalog.jsonb_build_object(
        'before', (select b.stated from before as b),
        'after', w.stated
    )
from written as w
returning case when detail -> 'before' = 'null' then 'added' else 'changed' end as change;
