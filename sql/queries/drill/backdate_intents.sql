-- name: backdate_intents
-- The history of a drill: what is due of this kind was promised for `notify_at`, and nobody has
-- sent it since. In the drill's database only.
with moved as (
    update duebook.intent as i
    set
        notify_at = :notify_at::timestamptz,
        give_up_at = :notify_at::timestamptz + (i.give_up_at - i.notify_at),
        created_at = :notify_at::timestamptz
    where
        i.kind = :kind::text
        and exists (
            select from duebook.environment as e
            where e.is_test and e.name = 'drill'
        )
    returning i.account_id, i.intent_id, i.notify_at, i.give_up_at
)

update duebook.due as d
set
    due_at = m.notify_at,
    give_up_at = m.give_up_at
from moved as m
where d.account_id = m.account_id and d.intent_id = m.intent_id
returning d.intent_id;
