-- Holds that wait for a payment which a reconciliation run settled in full, each with the newest
-- ledger change that says so.
create or replace function duebook.find_run_holds(p_run_id bigint)
returns table (account_id text, hold text, resource text, payment_id text, change_id bigint)
language sql
stable
set search_path = ''
as $$
    select h.account_id, h.hold, h.resource, h.payment_id, pg_catalog.max(c.change_id)
    from duebook.ledger_change as c
    inner join duebook.hold as h on c.account_id = h.account_id and c.payment_id = h.payment_id
    where
        c.run_id = p_run_id
        and c.change_kind = 'balance'
        and c.after_status in ('settled', 'over_settled')
        and h.confirmed_at is null
        and h.cancelled_at is null
        and h.refunded_at is null
    group by h.account_id, h.hold;
$$;
comment on function duebook.find_run_holds(bigint) is
'Holds that wait for a payment which a run settled in full, each with the ledger change that says so.';
