-- name: accept_environment
-- Accepts this database as the named environment, after a look by a person.
select duebook.accept_environment(:name, :is_test, :accepted_by);
