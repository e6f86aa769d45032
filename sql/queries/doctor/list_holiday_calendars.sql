-- name: list_holiday_calendars
-- Calendars of holidays that schedules use, and how many do.
select
    s.holiday_calendar,
    count(*) as users
from duebook.schedule as s
where s.holiday_calendar is not null and s.cancelled_at is null and s.next_on is not null
group by s.holiday_calendar
order by s.holiday_calendar;
