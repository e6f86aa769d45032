-- Whether an intent was claimed max_claims times (of its kind) without a result. Attempts that were
-- never tried are given a result by rescue and by release, so only those count that were.
create or replace function duebook.is_poison(
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
        coalesce((
            select
                p_claims >= k.max_claims
                and p_claims - (
                    select pg_catalog.count(*)
                    from duebook.attempt_result as r
                    where r.account_id = p_account_id and r.intent_id = p_intent_id
                ) >= k.max_claims
            from duebook.intent_kind as k
            where k.kind = p_kind
        ), false);
$$;
comment on function duebook.is_poison(text, bigint, text, integer) is
'Whether an intent was claimed max_claims times without a result.';
