-- name: list_account_payments
-- Which payments of an account its story tells: the newest by evidence, then by booking.
select
    p.payment_id,
    count(*) over () as payment_count
from duebook.ledger_payment as p
left outer join lateral (
    select max(c.change_id) as change_id
    from duebook.ledger_change as c
    where c.account_id = p.account_id and c.payment_id = p.payment_id
) as c on true
where p.account_id = :account_id
order by c.change_id desc nulls last, p.imported_at desc, p.payment_id asc
limit :row_limit::bigint;
