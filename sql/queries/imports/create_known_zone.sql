-- name: create_known_zone
-- IANA zones that a contact may live in.
create temporary table known_zone (
    zone text primary key
);
