-- name: write_contacts
-- Writes what is new or differs. Another address lifts what was said of the one before: that it is
-- gone, or failed for days.
with moved as materialized (
    select
        c.account_id,
        c.channel
    from duebook.contact as c
    inner join staged_contact as s on c.account_id = s.account_id and c.channel = s.channel
    where c.address <> s.address
),

lifted as (
    delete from duebook.suppression as x
    using moved as m
    where
        x.account_id = m.account_id
        and x.channel = m.channel
        and x.reason in ('failing', 'gone')
    returning x.account_id, x.channel, x.reason
),

audited as (
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    select
        'import',
        'lift_suppression',
        l.account_id,
        'channel:' || l.channel,
        jsonb_build_object('reason', 'another address', 'was', l.reason)
    from lifted as l
),

forgotten as (
    delete from duebook.failing_contact as f
    using moved as m
    where f.account_id = m.account_id and f.channel = m.channel
),

written as (
    insert into duebook.contact as c (account_id, channel, address, zone, locale, region)
    select
        s.account_id,
        s.channel,
        s.address,
        s.zone,
        s.locale,
        s.region
    from staged_contact as s
    order by s.account_id, s.channel
    on conflict (account_id, channel) do update
        set
            address = excluded.address,
            zone = excluded.zone,
            locale = excluded.locale,
            region = excluded.region,
            imported_at = clock_timestamp()
        where
        (c.address, c.zone, c.locale, c.region)
        is distinct from
        (excluded.address, excluded.zone, excluded.locale, excluded.region)
    returning xmax = 0 as is_new
)

select
    (select count(*) from staged_contact) as told,
    count(*) filter (where w.is_new) as added,
    count(*) filter (where not w.is_new) as changed
from written as w;
