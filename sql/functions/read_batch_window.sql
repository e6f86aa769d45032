-- The intents at the positions [p_from, p_upto) of a batch, in their order.
create or replace function duebook.read_batch_window(
    p_batch_id bigint,
    p_from integer,
    p_upto integer
) returns table (
    account_id text,
    intent_id bigint,
    attempt_no integer,
    due_at timestamptz,
    batch_id bigint,
    batch_position bigint
)
language sql
stable
set search_path = ''
as $$
    select w.account_id, w.intent_id, w.attempt_no, w.due_at, b.batch_id, w.ordinal + p_from - 1
    from duebook.batch as b
    cross join lateral unnest(
        b.account_ids[p_from + 1:p_upto],
        b.intent_ids[p_from + 1:p_upto],
        b.attempt_nos[p_from + 1:p_upto],
        b.due_ats[p_from + 1:p_upto]
    ) with ordinality as w (account_id, intent_id, attempt_no, due_at, ordinal)
    where b.batch_id = p_batch_id;
$$;
comment on function duebook.read_batch_window(bigint, integer, integer) is
'The intents at the positions [p_from, p_upto) of a batch, in their order.';
