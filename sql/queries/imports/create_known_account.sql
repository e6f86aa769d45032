-- name: create_known_account
-- Provider accounts that a payment may name: those of duebook.toml and those that were applied.
create temporary table known_account (
    provider_account text primary key,
    provider text not null
);
