-- name: create_routing_rule
-- Rules of duebook.toml for payments that name no provider account, in their order.
create temporary table routing_rule (
    position integer not null,
    provider_account text not null,
    reference_prefix text not null,
    currency text
);
