-- The promise to tell of a refund: a payment came for a hold that had expired and can't be held
-- again. Once per payment and hold, by its key. Returns whether it is promised: not where the kind
-- hold_refund is switched off. One that is not in the database is refused to an application, and
-- does not stop a run, which has put in what duebook.toml states.
create or replace function duebook.promise_hold_refund(
    p_hold duebook.hold,
    p_payment_id text,
    p_ownership text,
    p_change duebook.ledger_change
) returns boolean
language plpgsql
set search_path = ''
as $$
declare
    v_kind duebook.intent_kind;
    v_ownership text := p_ownership;
    v_cohort_version integer := 0;
begin
    select k.* into v_kind from duebook.intent_kind as k where k.kind = 'hold_refund';
    if not found and p_change.run_id is null then
        raise exception 'the kind hold_refund is not in the database: apply duebook.toml'
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    if v_kind.enabled is not true then
        return false;
    end if;

    if p_change.run_id is not null then
        select
            duebook.deciding_mode(p_ownership, c.mode, a.notify_from), coalesce(c.cohort_version, 0)
        into v_ownership, v_cohort_version
        from duebook.provider_account as a
        left join
            lateral duebook.cohort_of(p_hold.account_id, a.provider_account) as c on true
        where a.provider_account = p_change.provider_account;
    end if;

    with clock as materialized (
        select pg_catalog.clock_timestamp() + v_kind.notify_after as notify_at
    ),
    promised as (
        insert into duebook.intent (
            account_id, operation_key, kind, subject, payment_id, channel, notify_at, give_up_at,
            provider_account, run_id, change_id, ownership, cohort_version
        )
        select
            p_hold.account_id,
            pg_catalog.concat_ws(
                ':', 'hold_refund', v_kind.channel, 'hold', duebook.key_part(p_payment_id),
                duebook.key_part(p_hold.hold), 'v1'
            ),
            'hold_refund', 'hold:' || p_hold.hold, p_payment_id, v_kind.channel,
            c.notify_at, c.notify_at + v_kind.give_up_after,
            p_change.provider_account, p_change.run_id, p_change.change_id, v_ownership,
            v_cohort_version
        from clock as c
        on conflict (account_id, operation_key) do nothing
        returning account_id, intent_id, notify_at, kind, channel, give_up_at
    ),
    scheduled as (
        insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
        select p.account_id, p.intent_id, p.notify_at, p.kind, p.channel, p.give_up_at
        from promised as p
        where v_ownership = 'live'
    )
    insert into duebook.proposed (account_id, intent_id)
    select p.account_id, p.intent_id
    from promised as p
    where v_ownership <> 'live';
    return true;
end;
$$;
comment on function duebook.promise_hold_refund(
    duebook.hold, text, text, duebook.ledger_change
) is 'The promise to tell of a refund for a payment that came after its hold had expired; once per payment and hold. Returns whether it is promised.';
