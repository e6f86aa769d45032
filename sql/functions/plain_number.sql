-- A number as a file writes it, rewritten with a point and without thousands separators.
create or replace function duebook.plain_number(
    p_text text, p_decimal text, p_thousands text
) returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select
        pg_catalog.replace(
            case when p_thousands = '' then p_text else pg_catalog.replace(p_text, p_thousands, '') end,
            p_decimal,
            '.'
        );
$$;
comment on function duebook.plain_number(text, text, text) is
'A number as a file writes it, rewritten with a point and without thousands separators.';
