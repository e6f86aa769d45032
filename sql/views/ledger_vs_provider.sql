-- Booked and settled side by side, one row a payment: what is settled is the sum over all provider
-- accounts in the booked currency.
create or replace view duebook_reports.ledger_vs_provider as
select
    p.account_id,
    p.payment_id,
    p.reference,
    p.provider_account,
    s.provider_accounts as settled_by,
    p.booked_status,
    p.is_void,
    duebook.settled_status(
        p.amount_minor, s.captured_minor, s.refunded_minor, s.charged_back_minor
    ) as settled_status,
    p.currency,
    p.amount_minor as ledger_minor,
    s.captured_minor as provider_minor,
    s.captured_minor - p.amount_minor as difference_minor,
    s.refunded_minor,
    s.charged_back_minor,
    s.pending_minor,
    duebook.major_amount(p.amount_minor, p.currency, a.provider) as ledger_amount,
    duebook.major_amount(s.captured_minor, p.currency, a.provider) as provider_amount,
    duebook.major_amount(s.captured_minor - p.amount_minor, p.currency, a.provider) as difference,
    s.entry_count,
    p.expected_at,
    (p.expected_at at time zone 'UTC')::date as expected_on_utc,
    (p.expected_at at time zone coalesce(a.zone, 'UTC'))::date as expected_on_provider
from duebook.ledger_payment as p
left join duebook.provider_account as a on p.provider_account = a.provider_account
cross join lateral (
    select
        array_agg(distinct o.provider_account) as provider_accounts,
        coalesce(sum(o.captured_minor) filter (where o.currency = p.currency), 0)::bigint
            as captured_minor,
        coalesce(sum(o.refunded_minor) filter (where o.currency = p.currency), 0)::bigint
            as refunded_minor,
        coalesce(sum(o.charged_back_minor) filter (where o.currency = p.currency), 0)::bigint
            as charged_back_minor,
        coalesce(sum(o.pending_minor) filter (where o.currency = p.currency), 0)::bigint
            as pending_minor,
        coalesce(sum(o.entry_count), 0)::bigint as entry_count
    from duebook.settled_position as o
    where o.account_id = p.account_id and o.payment_id = p.payment_id
) as s;

comment on view duebook_reports.ledger_vs_provider is
'Every booked payment with its settled side, summed over all provider accounts in the booked currency.';
comment on column duebook_reports.ledger_vs_provider.account_id is 'Customer account.';
comment on column duebook_reports.ledger_vs_provider.payment_id is 'Payment.';
comment on column duebook_reports.ledger_vs_provider.reference is 'Reference that settlement entries carry.';
comment on column duebook_reports.ledger_vs_provider.provider_account is 'Provider account that is to settle it; null: unrouted.';
comment on column duebook_reports.ledger_vs_provider.settled_by is 'Provider accounts that have evidence of it.';
comment on column duebook_reports.ledger_vs_provider.booked_status is 'Status as the books say it.';
comment on column duebook_reports.ledger_vs_provider.is_void is 'True: the books cancelled it.';
comment on column duebook_reports.ledger_vs_provider.settled_status is
'expected, partially_settled, settled, over_settled, partially_refunded, refunded, charged_back.';
comment on column duebook_reports.ledger_vs_provider.currency is 'Booked currency, of all amounts here.';
comment on column duebook_reports.ledger_vs_provider.ledger_minor is 'Expected amount, minor units.';
comment on column duebook_reports.ledger_vs_provider.provider_minor is 'Captured, minor units.';
comment on column duebook_reports.ledger_vs_provider.difference_minor is 'Captured less expected, minor units.';
comment on column duebook_reports.ledger_vs_provider.refunded_minor is 'Refunded, minor units.';
comment on column duebook_reports.ledger_vs_provider.charged_back_minor is 'Charged back, minor units.';
comment on column duebook_reports.ledger_vs_provider.pending_minor is 'Announced and not yet settled, minor units.';
comment on column duebook_reports.ledger_vs_provider.ledger_amount is 'Expected amount, major units, exact.';
comment on column duebook_reports.ledger_vs_provider.provider_amount is 'Captured, major units, exact.';
comment on column duebook_reports.ledger_vs_provider.difference is 'Captured less expected, major units, exact.';
comment on column duebook_reports.ledger_vs_provider.entry_count is 'Entries that stand behind it.';
comment on column duebook_reports.ledger_vs_provider.expected_at is 'When the settlement is expected.';
comment on column duebook_reports.ledger_vs_provider.expected_on_utc is 'Day of that in UTC.';
comment on column duebook_reports.ledger_vs_provider.expected_on_provider is 'Day of that in the provider''s zone.';
