-- name: analyze_words
-- The planner takes a table without statistics for a large one, and would sort a million rows for
-- it.
analyze staged_type, staged_status, staged_zone, staged_exponent;
