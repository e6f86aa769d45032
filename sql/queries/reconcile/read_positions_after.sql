-- name: read_positions_after
-- Settled side of the affected payments over all provider accounts, after this run.
insert into position_after
select
    s.account_id,
    s.payment_id,
    s.currency,
    sum(s.captured_minor),
    sum(s.refunded_minor),
    sum(s.charged_back_minor)
from affected_payment as f
inner join duebook.settled_position as s
    on f.account_id = s.account_id and f.payment_id = s.payment_id
group by s.account_id, s.payment_id, s.currency;
