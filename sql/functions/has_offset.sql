-- Whether a time that a file states says its own offset from UTC, as in 2026-11-30T02:00:00Z.
create or replace function duebook.has_offset(p_text text) returns boolean
language sql
immutable
parallel safe
set search_path = ''
as $$
    select p_text like '%:%Z' or p_text like '%:%+%' or p_text like '%:%-%';
$$;
comment on function duebook.has_offset(text) is
'Whether a time that a file states says its own offset from UTC.';
