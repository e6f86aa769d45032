-- name: create_import_exponent
-- Decimals by provider and currency; a provider that counts as ISO does has no row of its own.
create temporary table import_exponent as
select
    x.provider,
    x.currency::text as currency,
    x.exponent,
    (10::numeric ^ x.exponent)::numeric(20, 0) as factor
from duebook.currency_exponent as x;
