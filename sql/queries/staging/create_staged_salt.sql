-- name: create_staged_salt
-- What else decides how a row's text is understood: with another configuration, or other decimals
-- of a currency, the same text has another fingerprint and is read again.
create temporary table staged_salt as
select
    hashtextextended(
        string_agg(concat(x.currency, x.exponent), ',' order by x.currency), :salt::bigint
    ) as salt
from staged_exponent as x;
