-- name: fill_hooks
-- Settled payments whose webhooks are due now, with contact, books and change, dealt out to the
-- accounts one after another.
with wanted as materialized (
    select
        n,
        'account-' || lpad((n % :accounts::integer)::text, 6, '0') as account_id,
        'P' || lpad(n::text, 10, '0') as payment_id
    from generate_series(0, :rows::integer - 1) as n
),

contacts as (
    insert into duebook.contact (account_id, channel, address, zone)
    select distinct
        w.account_id,
        'webhook',
        :url::text,
        'Europe/Amsterdam'
    from wanted as w
),

booked as (
    insert into duebook.ledger_payment (
        account_id, payment_id, reference, amount_minor, currency, booked_status, expected_at
    )
    select
        w.account_id,
        w.payment_id,
        'R-' || w.n,
        4200 + w.n,
        'EUR',
        'open',
        statement_timestamp()
    from wanted as w
),

changed as (
    insert into duebook.ledger_change (
        account_id, payment_id, run_id, provider_account, change_kind, before_status,
        after_status, currency, before_captured_minor, after_captured_minor,
        before_refunded_minor, after_refunded_minor, before_charged_back_minor,
        after_charged_back_minor, evidence_at
    )
    select
        w.account_id,
        w.payment_id,
        1,
        'bench',
        'balance',
        'pending',
        'settled',
        'EUR',
        0,
        4200 + w.n,
        0,
        0,
        0,
        0,
        statement_timestamp()
    from wanted as w
    returning account_id, payment_id, change_id
)

insert into duebook.intent (
    account_id, operation_key, kind, subject, payment_id, channel, notify_at, give_up_at,
    provider_account, ownership, change_id
)
select
    w.account_id,
    'payment_settled:webhook:bench:' || w.payment_id || ':E' || w.n || ':v1',
    'payment_settled',
    'payment:' || w.payment_id,
    w.payment_id,
    'webhook',
    statement_timestamp() - interval '1 second' + w.n * interval '1 microsecond',
    statement_timestamp() + interval '7 days',
    'bench',
    'live',
    c.change_id
from wanted as w
inner join changed as c on w.account_id = c.account_id and w.payment_id = c.payment_id;
