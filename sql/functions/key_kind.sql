-- Kind of notice of an operation key, as intent_kind calls it; the short forms of a key have a
-- longer one.
create or replace function duebook.key_kind(p_operation_key text) returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select case pg_catalog.split_part(p_operation_key, ':', 1)
        when 'missing' then 'payment_missing'
        when 'cleared' then 'payment_cleared'
        when 'remind' then 'reminder'
        else pg_catalog.split_part(p_operation_key, ':', 1)
    end;
$$;
comment on function duebook.key_kind(text) is
'Kind of notice of an operation key, as intent_kind calls it.';
