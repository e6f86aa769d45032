-- name: create_staged_type
-- What the provider's words for a row's type mean, by their lower-case form.
create temporary table staged_type (
    provider_type text primary key,
    entry_type text not null
);
