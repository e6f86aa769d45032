-- name: clear_candidates
-- Before all rows are read after all.
truncate candidate_row;
