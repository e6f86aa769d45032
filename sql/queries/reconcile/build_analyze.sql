-- name: build_analyze
-- The statement that renews the planner's picture of tables after many rows were added to them.
select concat('analyze ', string_agg(t.name::regclass::text, ', ')) as statement
from unnest(:tables::text[]) as t (name);
