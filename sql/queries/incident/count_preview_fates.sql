-- name: count_preview_fates
-- Inside a preview's transaction, after the rehearsal: how many of each place, reason and channel,
-- and for those that go on later, in which minute from now.
select
    f.channel,
    f.place,
    coalesce(
        f.reason,
        case
            when f.place <> 'due' then ''
            when
                exists (
                    select
                    from duebook.budget as b
                    where
                        b.channel = f.channel
                        and (b.tokens is not null or b.paused_until > clock_timestamp())
                ) then 'budget'
            else 'not_served'
        end
    ) as reason,
    case
        when f.place = 'later'
            then
                floor(extract(epoch from f.stands_at - :as_of::timestamptz) / 60)::integer
    end as minute,
    count(*) as intents,
    max(f.stands_at) filter (where f.place = 'later') as last_at
from duebook.incident_fates(0, :as_of::timestamptz) as f
group by 1, 2, 3, 4;
