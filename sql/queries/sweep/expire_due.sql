-- name: expire_due
-- One bounded pass over due intents that are past their limit.
select duebook.expire_due(:most::integer) as expired;
