-- name: stage_bookings
-- Rows of a ledger file as booked payments; what looks odd is marked suspect.
insert into staged_booking (
    line_no, account_id, payment_id, reference, amount_minor, currency, booked_status, expected_at,
    provider_account, is_void, group_reference, is_suspect
)
select
    b.line_no,
    b.account_id,
    b.payment_id,
    b.reference,
    coalesce(b.minor, (b.major * b.factor)::bigint),
    b.currency,
    b.booked_status,
    b.expected_at,
    b.provider_account,
    b.void in ('true', 't', '1', 'yes', 'y', 'void'),
    b.group_reference,
    coalesce(
        b.has_odd_text
        or b.factor is null
        or b.account_id is null
        or b.payment_id is null
        or b.reference is null
        or b.booked_status is null
        or b.expected_at is null
        or not b.is_account_known
        or coalesce(b.minor, b.major) is null
        or coalesce(min_scale(b.major) > b.exponent, false)
        or coalesce(b.major * b.factor <> b.minor, false)
        or char_length(b.account_id) > 200
        or char_length(b.payment_id) > 200
        or char_length(b.reference) > 200
        or coalesce(char_length(b.group_reference) > 200, false)
        or coalesce(
            b.void not in (
                'true', 't', '1', 'yes', 'y', 'void', 'false', 'f', '0', 'no', 'n'
            ),
            false
        ),
        true
    )
from (
    select
        w.line_no,
        w.account_id,
        w.payment_id,
        w.reference,
        case when not w.has_odd_text then w.amount_minor::bigint end as minor,
        case when not w.has_odd_text then w.amount::numeric end as major,
        w.currency,
        w.booked_status,
        case when not w.has_odd_text then w.expected_at::timestamptz end as expected_at,
        w.provider_account,
        w.is_account_known,
        w.void,
        w.group_reference,
        w.exponent,
        w.factor,
        w.has_odd_text
    from (
        select
            r.*,
            coalesce(
                translate(coalesce(r.amount_minor, ''), '0123456789-', '') <> ''
                or translate(coalesce(r.amount, ''), '0123456789.-', '') <> ''
                or translate(r.expected_at, '0123456789-:+.TZ ', '') <> ''
                or r.booked_status !~ '^[a-z][a-z0-9_]{0,62}$'
                or concat(r.account_id, r.payment_id, r.reference, r.group_reference)
                ~ '[\x01-\x1f\x7f]',
                true
            ) as has_odd_text
        from booking_row as r
        offset 0
    ) as w
    offset 0
) as b;
