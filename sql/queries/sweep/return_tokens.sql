-- name: return_tokens
-- Tokens that were taken for messages which were not sent.
update duebook.budget as b
set tokens = least(b.capacity, b.tokens + :tokens::integer)
where b.channel = :channel::text and b.tokens is not null;
