-- name: has_old_sender
-- Whether an old sender is known by that name.
select
    exists(
        select from duebook.old_sender as s
        where s.sender = :sender
    ) as is_known;
