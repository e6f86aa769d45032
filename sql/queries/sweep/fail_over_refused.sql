-- name: fail_over_refused
-- What a channel refused for good goes on by the next channel of its kind.
select duebook.fail_over_refused(:account_ids::text[], :intent_ids::bigint[]) as moved;
