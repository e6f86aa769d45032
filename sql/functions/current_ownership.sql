-- Whose an intent is now: as when its change committed, unless its key was moved by name.
create or replace function duebook.current_ownership(
    p_account_id text,
    p_intent_id bigint,
    p_ownership text
) returns text
language sql
stable
security definer
set search_path = ''
as $$
    select coalesce(
        (
            select c.ownership
            from duebook.ownership_change as c
            where c.account_id = p_account_id and c.intent_id = p_intent_id
            order by c.ownership_change_id desc
            limit 1
        ),
        p_ownership
    );
$$;
comment on function duebook.current_ownership(text, bigint, text) is
'Whose an intent is now: its ownership, unless its key was moved by name.';
