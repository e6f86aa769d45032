-- name: list_promise_zones
-- Zones that promises depend on, and of how many: of schedules that go on, and of contacts.
select
    'schedule' as zone_of,
    s.zone,
    count(*) as users
from duebook.schedule as s
where
    s.cancelled_at is null
    and (
        s.next_on is not null
        or exists (
            select from duebook.occurrence as c
            inner join duebook.held as h
                on c.account_id = h.account_id and c.intent_id = h.intent_id
            where c.account_id = s.account_id and c.schedule = s.schedule
        )
    )
group by s.zone
union all
select
    'contact' as zone_of,
    c.zone,
    count(*) as users
from duebook.contact as c
group by c.zone
order by zone_of, zone;
