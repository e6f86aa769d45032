-- name: bring_back_released
-- Inside a preview's transaction, whose clock stands still: what its passes released is due at the
-- instant that they took, and counts as due as of the preview.
update duebook.due as d
set due_at = :as_of::timestamptz
where
    d.channel = :channel::text
    and d.due_at > :as_of::timestamptz
    and d.due_at <= (select clock_timestamp())
    and d.suspicions < 2
    and (
        select c.reason
        from duebook.intent_change as c
        where c.account_id = d.account_id and c.intent_id = d.intent_id
        order by c.intent_change_id desc
        limit 1
    ) = 'released';
