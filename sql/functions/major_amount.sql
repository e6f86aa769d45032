-- An amount in major units, exact, from minor units as this provider counts them (null: ISO 4217).
create or replace function duebook.major_amount(
    p_minor bigint, p_currency char(3), p_provider text
) returns numeric
language sql
stable
security definer
parallel safe
set search_path = ''
as $$
    select
        pg_catalog.round(
            p_minor::numeric / 10::numeric ^ x.exponent, x.exponent::integer
        )
    from duebook.currency_exponent as x
    where x.currency = p_currency and x.provider in (p_provider, '*')
    order by x.provider = '*'
    limit 1;
$$;
comment on function duebook.major_amount(bigint, char, text) is
'An amount in major units, exact, from minor units as this provider counts them; null for an unknown currency.';
