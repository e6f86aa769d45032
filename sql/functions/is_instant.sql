-- Whether a text is an ISO 8601 date or instant; without an offset it is UTC (the session's zone).
create or replace function duebook.is_instant(p_text text) returns boolean
language plpgsql
stable
parallel safe
set search_path = ''
as $$
begin
    if p_text is null or pg_catalog.translate(p_text, '0123456789-:+.TZ ', '') <> '' then
        return false;
    end if;
    return p_text::timestamptz is not null;
exception
    when data_exception then
        return false;
end;
$$;
comment on function duebook.is_instant(text) is
'Whether a text is an ISO 8601 date or instant; false for null.';
