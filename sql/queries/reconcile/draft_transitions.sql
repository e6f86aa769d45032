-- name: draft_transitions
-- Each transition is a fact of its own; a cancelled payment's clearing is told to nobody.
insert into change_draft
select
    t.account_id,
    t.payment_id,
    t.transition,
    s.status,
    s.status,
    p.currency,
    s.captured_minor,
    s.captured_minor,
    s.refunded_minor,
    s.refunded_minor,
    s.charged_back_minor,
    s.charged_back_minor,
    null,
    null,
    p.expected_at,
    1 + (
        select coalesce(max(c.transition_no), 0)
        from duebook.ledger_change as c
        where c.account_id = t.account_id and c.payment_id = t.payment_id
    ),
    p.expected_at,
    t.transition = 'cleared' and not s.is_known
from transition as t
inner join duebook.ledger_payment as p
    on t.account_id = p.account_id and t.payment_id = p.payment_id
cross join lateral (
    select
        v.*,
        duebook.settled_status(
            p.amount_minor, v.captured_minor, v.refunded_minor, v.charged_back_minor
        ) as status
    from (
        select
            count(*) > 0 as is_known,
            coalesce(sum(o.captured_minor) filter (where o.currency = p.currency), 0)::bigint
                as captured_minor,
            coalesce(sum(o.refunded_minor) filter (where o.currency = p.currency), 0)::bigint
                as refunded_minor,
            coalesce(sum(o.charged_back_minor) filter (where o.currency = p.currency), 0)::bigint
                as charged_back_minor
        from duebook.settled_position as o
        where o.account_id = t.account_id and o.payment_id = t.payment_id
    ) as v
) as s;
