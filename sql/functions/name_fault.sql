-- What is wrong with a text as an identifier that others gave; null: nothing.
create or replace function duebook.name_fault(p_text text) returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select
        case
            when p_text is null then 'empty'
            when pg_catalog.char_length(p_text) > 200 then 'longer than 200 characters'
            when p_text ~ '[\x01-\x1f\x7f]' then 'control character'
        end;
$$;
comment on function duebook.name_fault(text) is
'What is wrong with a text as an identifier that others gave; null: nothing.';
