-- name: unsubscribe
-- A recipient left a topic by the link of a message.
select
    duebook.unsubscribe(
        :account_id::text, :kind::text, :channel::text, :source::text
    ) as verdict;
