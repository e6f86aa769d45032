-- name: list_old_senders
-- The old senders that are known, that ask.
select s.sender
from duebook.old_sender as s
where s.asks;
