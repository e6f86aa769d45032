-- name: fill_changes
-- The change that each notice tells: the payment has been settled.
insert into duebook.ledger_change (
    account_id,
    payment_id,
    run_id,
    provider_account,
    change_kind,
    before_status,
    after_status,
    currency,
    before_captured_minor,
    after_captured_minor,
    before_refunded_minor,
    after_refunded_minor,
    before_charged_back_minor,
    after_charged_back_minor,
    evidence_at
)
select
    p.account_id,
    p.payment_id,
    1 as run_id,
    'bench' as provider_account,
    'balance' as change_kind,
    'pending' as before_status,
    'settled' as after_status,
    p.currency,
    0 as before_captured_minor,
    p.amount_minor as after_captured_minor,
    0 as before_refunded_minor,
    0 as after_refunded_minor,
    0 as before_charged_back_minor,
    0 as after_charged_back_minor,
    statement_timestamp() as evidence_at
from duebook.ledger_payment as p
order by p.payment_id;
