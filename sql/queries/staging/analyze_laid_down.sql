-- name: analyze_laid_down
-- What was laid down is as large as it is, and the planner must know.
analyze staged_entry, staged_source;
