-- A date as a file writes it, year first; p_order is iso, day_first or month_first. A year of two
-- digits is one of this century.
create or replace function duebook.plain_date(p_text text, p_order text) returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select
        case p_order
            when 'iso' then p_text
            when 'day_first'
                then pg_catalog.regexp_replace(
                    pg_catalog.regexp_replace(
                        p_text, '^([0-9]{1,2}[./-][0-9]{1,2}[./-])([0-9]{2})(?![0-9])', '\120\2'
                    ),
                    '^([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})',
                    '\3-\2-\1'
                )
            when 'month_first'
                then pg_catalog.regexp_replace(
                    pg_catalog.regexp_replace(
                        p_text, '^([0-9]{1,2}[./-][0-9]{1,2}[./-])([0-9]{2})(?![0-9])', '\120\2'
                    ),
                    '^([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})',
                    '\3-\1-\2'
                )
        end;
$$;
comment on function duebook.plain_date(text, text) is
'A date as a file writes it, year first; the order is iso, day_first or month_first.';
