-- Whether an intent that was claimed before may be claimed again: no live batch has it, it is not
-- in doubt, and it is no poison (max_claims of its kind without a result).
create or replace function duebook.may_be_claimed(
    p_account_id text,
    p_intent_id bigint,
    p_kind text,
    p_claims integer
) returns boolean
language sql
stable
set search_path = ''
as $$
    select
        not duebook.is_in_flight(p_account_id, p_intent_id)
        and not duebook.is_poison(p_account_id, p_intent_id, p_kind, p_claims);
$$;
comment on function duebook.may_be_claimed(text, bigint, text, integer) is
'Whether an intent that was claimed before may be claimed again: not in flight and no poison.';
