-- name: list_exponents
-- Decimals of each currency by provider; * is every provider without a row of its own.
select
    x.provider,
    x.currency,
    x.exponent
from duebook.currency_exponent as x;
