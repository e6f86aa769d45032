-- name: analyze_rules
-- The planner takes a table without statistics for a large one.
analyze routing_rule, known_account, import_exponent;
