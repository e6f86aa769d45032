-- name: find_open_occurrences
-- Occurrences of some schedules that have no outcome; after an edit only those due from then on,
-- since what was due before is still the old rule's.
select
    c.account_id,
    c.intent_id
from
    unnest(
        :account_ids::text[], :schedules::text[], :edited_ats::timestamptz[]
    ) as w (account_id, schedule, edited_at)
inner join duebook.occurrence as c
    on
        w.account_id = c.account_id
        and w.schedule = c.schedule
        and (c.due_at is null or w.edited_at is null or w.edited_at < c.due_at)
inner join duebook.intent as i
    on c.account_id = i.account_id and c.intent_id = i.intent_id
where
    not exists (
        select from duebook.outcome as o
        where o.account_id = i.account_id and o.operation_key = i.operation_key
    );
