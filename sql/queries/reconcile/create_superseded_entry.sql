-- name: create_superseded_entry
-- What this run was told about an entry before the newest word: kept as versions.
create temporary table superseded_entry (like staged_entry, position integer);
