-- name: put_provider_account
-- Writes one provider account and says what changed. Going live without a stated notify_from sets
-- it to the database's clock of this moment; a stated one wins; what was set once stays.
with before as (
    select
        a.notify_from,
        pg_catalog.jsonb_build_object(
            'provider', a.provider,
            'mode', a.mode,
            'notify_from', a.notify_from,
            'settle_within', a.settle_within,
            'zone', a.zone,
            'look_back', a.look_back,
            'settings', a.settings
        ) as stated
    from duebook.provider_account as a
    where a.provider_account = :provider_account
),

wanted as (
    select
        :provider::text as provider,
        :mode::text as mode,
        coalesce(
            :notify_from::timestamptz,
            (select b.notify_from from before as b),
            case when :mode::text = 'live' then clock_timestamp() end
        ) as notify_from,
        :settle_within::interval as settle_within,
        :zone::text as zone,
        :look_back::interval as look_back,
        :settings::jsonb as settings
),

written as (
    insert into duebook.provider_account as a (
        provider_account,
        provider,
        mode,
        notify_from,
        settle_within,
        zone,
        look_back,
        settings
    )
    select
        :provider_account,
        w.provider,
        w.mode,
        w.notify_from,
        w.settle_within,
        w.zone,
        w.look_back,
        w.settings
    from wanted as w
    on conflict (provider_account) do update
        set
            provider = excluded.provider,
            mode = excluded.mode,
            notify_from = excluded.notify_from,
            settle_within = excluded.settle_within,
            zone = excluded.zone,
            look_back = excluded.look_back,
            settings = excluded.settings,
            updated_at = clock_timestamp()
        where
        (a.provider, a.mode, a.notify_from, a.settle_within, a.zone, a.look_back, a.settings)
        is distinct from
        (
            excluded.provider,
            excluded.mode,
            excluded.notify_from,
            excluded.settle_within,
            excluded.zone,
            excluded.look_back,
            excluded.settings
        )
    returning
        pg_catalog.jsonb_build_object(
            'provider', a.provider,
            'mode', a.mode,
            'notify_from', a.notify_from,
            'settle_within', a.settle_within,
            'zone', a.zone,
            'look_back', a.look_back,
            'settings', a.settings
        ) as stated
)

insert into duebook.audit_event (actor, action, subject, detail)
select
    :actor,
    'apply_provider_account',
    :provider_account,
    pg_catalog.jsonb_build_object(
        'before', (select b.stated from before as b),
        'after', w.stated
    )
from written as w
returning case when detail -> 'before' = 'null' then 'added' else 'changed' end as change;
