-- The mode in which an intent is paused now: hold or drop, null when it is not. Of several pauses
-- drop wins.
create or replace function duebook.pause_mode(p_account_id text, p_kind text, p_channel text)
returns text
language sql
stable
set search_path = ''
as $$
    select p.mode
    from duebook.pause as p
    where
        (p.scope, p.name) in (
            ('all', '*'), ('kind', p_kind), ('channel', p_channel), ('account', p_account_id)
        )
    order by p.mode
    limit 1;
$$;
comment on function duebook.pause_mode(text, text, text) is
'The mode in which an intent is paused now: hold or drop, null when it is not. Drop wins.';
