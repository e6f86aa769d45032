-- name: delete_positions
-- Positions of affected payments that no entry stands behind any more.
delete from duebook.settled_position as s
using affected_payment as f
where
    s.provider_account = :provider_account
    and s.account_id = f.account_id
    and s.payment_id = f.payment_id
    and not exists (
        select from position_new as n
        where
            n.account_id = s.account_id
            and n.payment_id = s.payment_id
            and n.currency = s.currency
    );
