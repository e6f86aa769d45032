-- name: create_staged_status
-- What the provider's words for a row's status mean, by their lower-case form.
create temporary table staged_status (
    provider_status text primary key,
    entry_status text not null
);
