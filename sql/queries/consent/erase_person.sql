-- name: erase_person
-- Takes out what says who an account is.
select
    e.what,
    e.rows_erased
from duebook.erase_person(:account_id::text, :reason::text, :by::text) as e;
