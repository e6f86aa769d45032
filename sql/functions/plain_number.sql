-- A number as a file writes it, rewritten with a point and without thousands separators. What only
-- looks like a number once its separators are gone ("10,58" where a comma parts thousands) comes
-- with the reason why it is none.
create or replace function duebook.plain_number(
    p_text text, p_decimal text, p_thousands text
) returns text
language plpgsql
immutable
parallel safe
set search_path = ''
as $$
declare
    v_number text;
    v_grouped text := '';
begin
    if pg_catalog.translate(p_text, '0123456789-', '') in ('', p_decimal) then
        return pg_catalog.replace(p_text, p_decimal, '.');
    end if;
    v_number := p_text;
    if p_thousands <> '' then
        v_number := pg_catalog.replace(p_text, p_thousands, '');
        v_grouped := pg_catalog.format(
            '|[1-9][0-9]{0,2}([%1$s][0-9]{2,3})*[%1$s][0-9]{3}', p_thousands
        );
    end if;
    v_number := pg_catalog.replace(v_number, p_decimal, '.');
    if
        v_number ~ '^-?([0-9]+\.?[0-9]*|\.[0-9]+)$'
        and p_text !~ pg_catalog.format('^-?([0-9]+%s)?([%s][0-9]*)?$', v_grouped, p_decimal)
    then
        return pg_catalog.concat(p_text, ' where ', p_decimal, ' parts decimals');
    end if;
    return v_number;
end;
$$;
comment on function duebook.plain_number(text, text, text) is
'A number as a file writes it, rewritten with a point and without thousands separators.';
