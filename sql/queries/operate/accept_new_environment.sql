-- name: accept_new_environment
-- Accepts a database that never had an environment. A copy has the row of its original and stays
-- refused until a person accepts it.
select duebook.accept_environment(:name, :is_test, :accepted_by)
where not exists (select 1 from duebook.environment);
