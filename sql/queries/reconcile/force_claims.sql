-- name: force_claims
-- What a person decided comes before every reference.
update claim as c
set
    account_id = f.account_id,
    payment_id = f.payment_id,
    candidates = 1
from duebook.forced_match as f
where
    f.provider_account = :provider_account
    and f.is_active
    and c.entry_id = f.entry_id;
