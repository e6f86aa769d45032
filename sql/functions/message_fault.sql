-- What is wrong with the texts of a schedule's message; null: nothing. Names that a reminder's own
-- facts have can't be given again.
create or replace function duebook.message_fault(p_message jsonb) returns text
language sql
immutable
set search_path = ''
as $$
    select case
        when p_message is null or pg_catalog.jsonb_typeof(p_message) <> 'object'
            then 'expected an object of texts'
        when exists (
            select from pg_catalog.jsonb_each(p_message) as m
            where pg_catalog.jsonb_typeof(m.value) <> 'string'
        ) then 'expected texts only'
        when exists (
            select from pg_catalog.jsonb_object_keys(p_message) as m (name)
            where m.name !~ '^[a-z][a-z0-9_]{0,62}$' or m.name ~ '_minor$'
        ) then 'expected names of small letters, digits and _, none that ends in _minor'
        when p_message operator(pg_catalog.?|) array['account_id', 'schedule', 'occurs_on', 'occurs_at', 'zone']
            then 'account_id, schedule, occurs_on, occurs_at and zone are known anyway'
        when pg_catalog.length(p_message::text) > 20000 then 'longer than 20,000 characters'
    end;
$$;
comment on function duebook.message_fault(jsonb) is
'What is wrong with the texts of a schedule''s message; null: nothing.';
