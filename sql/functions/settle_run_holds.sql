-- The holds whose payment a reconciliation run settled in full: each is confirmed, re-held or makes
-- a refund, in the run's own transaction. Resources are locked first, all in one order, then the
-- holds in theirs. p_mode is the account's mode: what is promised by one that is not live stays a
-- proposal. Returns how many holds changed, and how many refunds were promised.
create or replace function duebook.settle_run_holds(p_run_id bigint, p_mode text, p_by text)
returns table (settled integer, refunds integer)
language plpgsql
set search_path = ''
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_waiting record;
    v_resource text;
    v_change duebook.ledger_change;
    v_answer text;
    v_answers text[] := '{}';
begin
    for v_resource in
        select distinct w.resource
        from duebook.find_run_holds(p_run_id) as w
        where w.resource is not null
        order by w.resource
    loop
        perform duebook.lock_hold_resource(v_resource);
    end loop;
    for v_waiting in
        select w.account_id, w.hold, w.payment_id, w.change_id
        from duebook.find_run_holds(p_run_id) as w
        order by w.account_id, w.hold
    loop
        select c.* into v_change
        from duebook.ledger_change as c
        where c.account_id = v_waiting.account_id and c.change_id = v_waiting.change_id;
        v_answer := duebook.settle_hold(
            v_waiting.account_id, v_waiting.hold, v_waiting.payment_id, p_mode, v_change, p_by
        );
        v_answers := v_answers || v_answer;
    end loop;
    return query
    select
        (pg_catalog.count(*) filter (where a.answer in ('confirmed', 'reheld', 'refund')))::integer,
        (pg_catalog.count(*) filter (where a.answer = 'refund'))::integer
    from unnest(v_answers) as a (answer);
end;
$$;
comment on function duebook.settle_run_holds(bigint, text, text) is
'Confirms, re-holds or refunds the holds whose payment a run settled in full. Returns how many changed, and how many refunds.';
