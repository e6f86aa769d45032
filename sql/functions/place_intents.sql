-- Gives intents their rows in the moving tables, where locate_intents() says. Returns how many.
create or replace function duebook.place_intents(p_account_ids text[], p_intent_ids bigint[])
returns integer
language sql
set search_path = ''
as $$
    with located as materialized (
        select l.* from duebook.locate_intents(p_account_ids, p_intent_ids) as l
    ),
    due as (
        insert into duebook.due (
            account_id, intent_id, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            l.account_id, l.intent_id, l.due_at, l.kind, l.channel, l.give_up_at,
            l.tries, l.claims, l.suspicions, l.safe_retry_until
        from located as l
        where l.place = 'due'
        on conflict do nothing
    ),
    held as (
        insert into duebook.held (
            account_id, intent_id, cause, due_at, kind, channel, give_up_at,
            tries, claims, suspicions, safe_retry_until
        )
        select
            l.account_id, l.intent_id, l.cause, l.due_at, l.kind, l.channel, l.give_up_at,
            l.tries, l.claims, l.suspicions, l.safe_retry_until
        from located as l
        where l.place = 'held'
        on conflict do nothing
    ),
    in_doubt as (
        insert into duebook.in_doubt (
            account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel,
            give_up_at, tries, claims, look_up_from
        )
        select
            l.account_id, l.intent_id, l.claims, l.batch_id, l.cause, l.due_at, l.kind, l.channel,
            l.give_up_at, l.tries, l.claims, pg_catalog.clock_timestamp()
        from located as l
        where l.place = 'in_doubt'
        on conflict do nothing
    ),
    proposed as (
        insert into duebook.proposed (account_id, intent_id)
        select l.account_id, l.intent_id
        from located as l
        where l.place = 'proposed'
        on conflict do nothing
    )
    select pg_catalog.count(*)::integer from located;
$$;
comment on function duebook.place_intents(text[], bigint[]) is
'Gives intents their rows in the moving tables, where their facts say. Returns how many.';
