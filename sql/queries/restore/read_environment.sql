-- name: read_environment
-- The environment that this database was accepted for.
select
    e.name,
    e.is_test
from duebook.environment as e;
