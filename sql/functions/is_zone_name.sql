-- Whether a text names a time zone of this server's data, spelt exactly. What is capitalized as
-- most are is asked for directly, which is fast; the rest by the list: the server takes any case,
-- abbreviations and offsets.
create or replace function duebook.is_zone_name(p_zone text) returns boolean
language plpgsql
stable
set search_path = ''
as $$
begin
    if p_zone = 'UTC' then
        return true;
    end if;
    if p_zone ~ '^[A-Z][a-z]+(/[A-Z][a-z]+(_[A-Z][a-z]+)*)+$' then
        return (timestamp '2000-01-01 00:00' at time zone p_zone) is not null;
    end if;
    return exists (select from pg_catalog.pg_timezone_names as z where z.name = p_zone);
exception
    when invalid_parameter_value then
        return false;
end;
$$;
comment on function duebook.is_zone_name(text) is
'Whether a text names a time zone of this server''s data; abbreviations and offsets are none.';
