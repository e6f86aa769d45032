-- Whether a text is a date, a date and time, or an instant with its offset; a fraction of a second
-- may follow the seconds.
create or replace function duebook.is_time(p_text text) returns boolean
language plpgsql
stable
parallel safe
set search_path = ''
as $$
begin
    if
        p_text is null
        or pg_catalog.translate(p_text, '0123456789-: .+', '') not in ('', 'T', 'Z', 'TZ')
        or (p_text like '%.%' and p_text !~ ':[0-9]{2}[.][0-9]+ ?(Z|[+-]|$)')
    then
        return false;
    end if;
    if duebook.has_offset(p_text) then
        return p_text::timestamptz is not null;
    end if;
    return p_text::timestamp is not null;
exception
    when data_exception then
        return false;
end;
$$;
comment on function duebook.is_time(text) is
'Whether a text is a date, a date and time, or an instant with its offset; false for null.';
