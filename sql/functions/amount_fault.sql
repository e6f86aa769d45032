-- What is wrong with a text as a decimal amount of a currency with p_exponent decimals; null:
-- nothing.
create or replace function duebook.amount_fault(p_text text, p_exponent smallint) returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select
        case
            when p_text is null then null
            when p_text !~ '^-?([0-9]+\.?[0-9]*|\.[0-9]+)$' then 'not a number'
            when char_length(p_text) > 40 then 'too long a number'
            when pg_catalog.min_scale(p_text::numeric) > p_exponent
                then 'more decimals than the currency has'
            when pg_catalog.abs(p_text::numeric) * 10::numeric ^ p_exponent >= 9223372036854775807
                then 'too large a number'
        end;
$$;
comment on function duebook.amount_fault(text, smallint) is
'What is wrong with a text as a decimal amount of a currency with so many decimals; null: nothing.';
