-- name: write_contacts
-- Writes what is new or differs.
with written as (
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
