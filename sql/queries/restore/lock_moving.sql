-- name: lock_moving
-- No claim, flush, rescue or new intent while this transaction lasts; readers go on.
lock table
duebook.batch, duebook.due, duebook.held, duebook.in_doubt, duebook.proposed
in exclusive mode;
