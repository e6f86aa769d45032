-- One part of an operation key as it stands there; the same as duebook.domain.keys.escape.
create or replace function duebook.key_part(p_part text) returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select pg_catalog.replace(pg_catalog.replace(p_part, '%', '%25'), ':', '%3A');
$$;
comment on function duebook.key_part(text) is
'One part of an operation key, escaped: % becomes %25, then : becomes %3A.';
