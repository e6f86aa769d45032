-- name: analyze_candidates
-- How many rows are read decides how they are found.
analyze candidate_row;
