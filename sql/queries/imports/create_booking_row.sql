-- name: create_booking_row
-- Raw rows of a ledger file with their route and the decimals that count; both ways of reading use
-- it.
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
    r.group_reference,
    coalesce(x.exponent, o.exponent) as exponent,
    coalesce(x.factor, o.factor) as factor
from (
    select
        w.*,
        case
            when w.provider_account is not null then w.provider_account
            else (
                select u.provider_account
                from routing_rule as u
                where
                    starts_with(w.reference, u.reference_prefix)
                    and coalesce(u.currency = w.currency, true)
                order by u.position
                limit 1
            )
        end as routed_account
    from raw_row as w
) as r
left join known_account as k on r.routed_account = k.provider_account
left join import_exponent as x on k.provider = x.provider and r.currency = x.currency
left join import_exponent as o on o.provider = '*' and r.currency = o.currency;
