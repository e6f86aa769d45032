-- name: put_routing_rules
-- Enters the rules, the default as the last one.
insert into routing_rule (position, provider_account, reference_prefix, currency)
select
    r.position,
    r.provider_account,
    r.reference_prefix,
    r.currency
from unnest(:accounts::text[], :prefixes::text[], :currencies::text[]) with ordinality
    as r (provider_account, reference_prefix, currency, position);
