-- name: read_cursor
-- How far the API of an account was read.
select a.cursor_position
from duebook.provider_account as a
where a.provider_account = :provider_account;
