-- name: postpone_schedule
-- A rule that can't be computed (its calendar of holidays is known no more) is looked at later, so
-- that it is in nobody's way.
update duebook.schedule as s
set next_at = greatest(s.next_at, :until::timestamptz + interval '10 minutes')
where s.account_id = :account_id and s.schedule = :schedule;
