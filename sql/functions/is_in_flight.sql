-- Whether a live batch holds an attempt of the intent that has no result, or it is in doubt.
create or replace function duebook.is_in_flight(p_account_id text, p_intent_id bigint)
returns boolean
language sql
stable
set search_path = ''
as $$
    select
        exists (
            select
            from duebook.attempt as a
            inner join duebook.batch as b on a.batch_id = b.batch_id
            where
                a.account_id = p_account_id
                and a.intent_id = p_intent_id
                and not exists (
                    select
                    from duebook.attempt_result as r
                    where
                        r.account_id = a.account_id
                        and r.intent_id = a.intent_id
                        and r.attempt_no = a.attempt_no
                )
        )
        or exists (
            select
            from duebook.in_doubt as u
            where u.account_id = p_account_id and u.intent_id = p_intent_id
        );
$$;
comment on function duebook.is_in_flight(text, bigint) is
'Whether a live batch holds an attempt of the intent without a result, or it is in doubt.';
