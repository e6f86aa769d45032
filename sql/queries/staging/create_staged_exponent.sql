-- name: create_staged_exponent
-- How the provider counts minor units: its own rows before ISO's.
create temporary table staged_exponent as
select distinct on (x.currency)
    x.currency::text as currency,
    x.exponent,
    (10::numeric ^ x.exponent)::numeric(20, 0) as factor
from duebook.currency_exponent as x
where x.provider in (:provider::text, '*')
order by x.currency, x.provider = '*';
