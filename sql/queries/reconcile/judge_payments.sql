-- name: judge_payments
-- The full outer comparison of booked and settled, payment by payment, in one pass. In scope is
-- what is routed to this provider account, and what no route claims and this account (the first by
-- name) settles. Amount compares captured with expected, inside the :tolerance of its currency;
-- refunds and chargebacks change the status only. Less than expected is pending inside the promise
-- or while the rest is announced, then missing when there is nothing at all. A cancelled payment of
-- which nothing was captured is out. Writes the findings and returns how many payments match and
-- how many are pending.
with payment as (
    select
        p.account_id,
        p.payment_id,
        p.reference,
        p.amount_minor,
        p.currency,
        p.booked_status,
        p.is_void,
        p.is_void
        or p.booked_status in ('void', 'voided', 'cancelled', 'canceled', 'failed') as is_cancelled,
        p.expected_at + :settle_within::interval < :as_of::timestamptz as is_late,
        count(s.currency) > 0 as is_known,
        coalesce(sum(s.captured_minor) filter (where s.currency = p.currency), 0)::bigint
            as captured_minor,
        coalesce(sum(s.refunded_minor) filter (where s.currency = p.currency), 0)::bigint
            as refunded_minor,
        coalesce(sum(s.charged_back_minor) filter (where s.currency = p.currency), 0)::bigint
            as charged_back_minor,
        coalesce(bool_or(s.pending_minor <> 0), false) as is_announced,
        min(s.currency) filter (where s.currency <> p.currency and s.captured_minor <> 0)
            as foreign_currency
    from duebook.ledger_payment as p
    left join duebook.settled_position as s
        on p.account_id = s.account_id and p.payment_id = s.payment_id
    where
        (p.provider_account = :provider_account or p.provider_account is null)
        and (
            :is_full::boolean
            or exists (
                select from affected_payment as f
                where f.account_id = p.account_id and f.payment_id = p.payment_id
            )
        )
    group by p.account_id, p.payment_id
    having coalesce(p.provider_account, min(s.provider_account)) = :provider_account
),

judged as (
    select
        d.*,
        case
            when d.is_cancelled then 'out'
            when d.foreign_currency is not null and d.captured_minor = 0 then 'foreign'
            when d.captured_minor = d.amount_minor then 'matched'
            when
                d.captured_minor <> 0
                and abs(d.captured_minor - d.amount_minor)
                <= coalesce((:tolerance::jsonb ->> d.currency)::bigint, 0)
                then 'matched'
            when d.captured_minor > d.amount_minor then 'amount'
            when not d.is_late or d.is_announced then 'pending'
            when d.is_known then 'amount'
            else 'missing'
        end as verdict,
        case
            when d.is_cancelled
                then d.captured_minor - d.refunded_minor - d.charged_back_minor > 0
            when d.booked_status = 'refunded' then d.is_late and d.refunded_minor <= 0
            when d.booked_status in ('charged_back', 'chargeback', 'disputed')
                then d.is_late and d.charged_back_minor <= 0
            when d.booked_status in ('settled', 'paid', 'captured', 'succeeded')
                then
                    d.charged_back_minor > 0
                    or (d.refunded_minor > 0 and d.refunded_minor >= d.captured_minor)
            else false
        end as is_status_wrong
    from payment as d
),

counted as (
    select
        count(*) filter (
            where j.verdict = 'matched' and not j.is_status_wrong and j.foreign_currency is null
        ) as matched,
        count(*) filter (
            where j.verdict = 'pending' and not j.is_status_wrong and j.foreign_currency is null
        ) as pending
    from judged as j
),

-- Nearly every payment matches: it is left out before the branches of `found` are looked at.
differing as (
    select j.*
    from judged as j
    where
        j.verdict in ('missing', 'amount')
        or j.is_status_wrong
        or j.foreign_currency is not null
),

found as (
    insert into finding (
        kind, subject, account_id, payment_id, provider_minor, ledger_minor, currency, detail,
        severity
    )
    select
        k.kind,
        concat('payment:', j.account_id, ':', j.payment_id),
        j.account_id,
        j.payment_id,
        k.provider_minor,
        j.amount_minor,
        k.currency,
        k.detail,
        k.severity
    from differing as j
    cross join lateral (
        select
            'missing_at_provider' as kind,
            null::bigint as provider_minor,
            j.currency,
            null as detail,
            'high' as severity
        where
            :is_full::boolean
            and j.verdict = 'missing'
            and not exists (
                -- Evidence that several payments claim is no absence; it is a duplicate reference.
                select from duebook.settlement_entry as e
                where
                    e.payment_ref = j.reference
                    and e.provider_account = :provider_account
                    and e.account_id is null
                    and e.payment_ref is not null
                    and e.entry_status <> 'withdrawn'
            )
        union all
        select
            'amount_mismatch',
            j.captured_minor,
            j.currency,
            case
                when j.captured_minor > j.amount_minor then 'more than expected' else
                    'less than expected'
            end,
            'normal'
        where j.verdict = 'amount'
        union all
        select
            'currency_mismatch',
            f.captured_minor,
            f.currency,
            format('booked in %s, settled in %s', j.currency, f.currency),
            'normal'
        from (
            select
                s.currency,
                sum(s.captured_minor)::bigint as captured_minor
            from duebook.settled_position as s
            where
                j.foreign_currency is not null
                and s.account_id = j.account_id
                and s.payment_id = j.payment_id
                and s.currency = j.foreign_currency
            group by s.currency
        ) as f
        where not j.is_cancelled
        union all
        select
            'status_mismatch',
            j.captured_minor,
            j.currency,
            format(
                'booked %s, settled side %s',
                case when j.is_void then 'void' else j.booked_status end,
                duebook.settled_status(
                    j.amount_minor, j.captured_minor, j.refunded_minor, j.charged_back_minor
                )
            ),
            'high'
        where j.is_status_wrong
    ) as k
)

select
    c.matched,
    c.pending
from counted as c;
