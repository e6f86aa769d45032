-- name: create_booking_row
-- Raw rows of a ledger file with their route and the decimals that count; both ways of reading use it.
create temporary view booking_row as
select
    r.line_no,
    r.account_id,
    r.payment_id,
    r.reference,
    r.amount_minor,
    r.amount,
    r.currency,
    lower(r.status) as booked_status,
    r.expected_at,
    r.provider_account as stated_account,
    k.provider_account,
    (r.provider_account is null or k.provider_account is not null) as is_account_known,
    lower(r.void) as void,
    coalesce(x.exponent, o.exponent) as exponent,
    coalesce(x.factor, o.factor) as factor
from raw_row as r
left join lateral (
    select u.provider_account
    from routing_rule as u
    where
        r.provider_account is null
        and starts_with(r.reference, u.reference_prefix)
        and coalesce(u.currency = r.currency, true)
    order by u.position
    limit 1
) as t on true
left join known_account as k on coalesce(r.provider_account, t.provider_account) = k.provider_account
left join import_exponent as x on k.provider = x.provider and r.currency = x.currency
left join import_exponent as o on o.provider = '*' and r.currency = o.currency;
