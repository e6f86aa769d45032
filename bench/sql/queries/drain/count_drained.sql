-- name: count_drained
-- What must hold after a drain: each promise tried once, answered once, ended once, nothing left.
select
    (select count(*) from duebook.attempt) as attempts,
    (select count(*) from duebook.attempt_result where result = 'sent' and not is_late) as results,
    (select count(*) from duebook.outcome where result = 'sent') as outcomes,
    (select count(*) from duebook.due) as due,
    (select count(*) from duebook.batch) as batches,
    (select count(*) from duebook.held) + (select count(*) from duebook.in_doubt) as elsewhere;
