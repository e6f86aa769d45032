-- Writes the outcome of each attempt given by position from its stored result; a key that has one
-- keeps it. Returns how many were written.
create or replace function duebook.append_outcomes(
    p_account_ids text[],
    p_intent_ids bigint[],
    p_attempt_nos integer[]
) returns bigint
language sql
set search_path = ''
as $$
    with written as (
        insert into duebook.outcome (
            account_id, operation_key, intent_id, kind, payment_id, result, reason,
            intended_local, zone, due_at, attempt_no, provider_message_id
        )
        select
            i.account_id, i.operation_key, i.intent_id, i.kind, i.payment_id, r.result, r.reason,
            i.intended_local, i.zone, a.due_at, r.attempt_no, r.provider_message_id
        from unnest(p_account_ids, p_intent_ids, p_attempt_nos)
            as g (account_id, intent_id, attempt_no)
        inner join duebook.intent as i
            on g.account_id = i.account_id and g.intent_id = i.intent_id
        inner join duebook.attempt as a
            on
                g.account_id = a.account_id
                and g.intent_id = a.intent_id
                and g.attempt_no = a.attempt_no
        inner join duebook.attempt_result as r
            on
                g.account_id = r.account_id
                and g.intent_id = r.intent_id
                and g.attempt_no = r.attempt_no
        order by i.account_id, i.operation_key
        on conflict do nothing
        returning account_id
    )
    select pg_catalog.count(*) from written;
$$;
comment on function duebook.append_outcomes(text[], bigint[], integer[]) is
'Writes the outcome of each given attempt from its stored result; a key that has one keeps it. Returns how many were written.';
