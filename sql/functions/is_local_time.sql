-- Whether a text is a date or a date and time without zone, such as 2026-11-30 02:00:00.
create or replace function duebook.is_local_time(p_text text) returns boolean
language plpgsql
immutable
parallel safe
set search_path = ''
as $$
begin
    if p_text is null or pg_catalog.translate(p_text, '0123456789-: ', '') not in ('', 'T') then
        return false;
    end if;
    return p_text::timestamp is not null;
exception
    when data_exception then
        return false;
end;
$$;
comment on function duebook.is_local_time(text) is
'Whether a text is a date or a date and time without zone; false for null.';
