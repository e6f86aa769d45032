-- name: find_occurrences_without_intent
-- An occurrence is written together with the intent that promises it, of its schedule and date.
select
    c.account_id,
    format('%s %s', c.schedule, c.nominal_on) as operation_key
from duebook.occurrence as c
where
    not exists (
        select from duebook.intent as i
        where
            i.account_id = c.account_id
            and i.intent_id = c.intent_id
            and i.subject = concat('schedule:', c.schedule)
            and right(i.operation_key, 11) = concat(':', c.nominal_on::text)
    )
order by c.account_id, operation_key
limit :row_limit;
