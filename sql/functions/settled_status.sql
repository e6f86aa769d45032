-- Status of a payment's settled side, from what was expected and what the evidence sums to (minor
-- units of one currency). A chargeback outweighs a refund, a refund a capture.
create or replace function duebook.settled_status(
    p_expected_minor bigint,
    p_captured_minor bigint,
    p_refunded_minor bigint,
    p_charged_back_minor bigint
) returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select
        case
            when p_charged_back_minor > 0 then 'charged_back'
            when p_refunded_minor > 0 and p_refunded_minor >= p_captured_minor then 'refunded'
            when p_refunded_minor > 0 then 'partially_refunded'
            when p_captured_minor <= 0 then 'expected'
            when p_captured_minor < p_expected_minor then 'partially_settled'
            when p_captured_minor = p_expected_minor then 'settled'
            else 'over_settled'
        end;
$$;
comment on function duebook.settled_status(bigint, bigint, bigint, bigint) is
'Status of the settled side: expected, partially_settled, settled, over_settled, partially_refunded, refunded, charged_back.';
