-- name: delete_positions
-- Positions of affected payments that no entry stands behind any more: found among the positions
-- that were there before.
delete from duebook.settled_position as s
using (
    select
        b.account_id,
        b.payment_id,
        b.currency
    from position_before as b
    left join position_new as n
        on b.account_id = n.account_id and b.payment_id = n.payment_id and b.currency = n.currency
    where n.currency is null
) as g
where
    s.provider_account = :provider_account
    and s.account_id = g.account_id
    and s.payment_id = g.payment_id
    and s.currency = g.currency;
