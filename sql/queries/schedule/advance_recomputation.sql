-- name: advance_recomputation
-- How far waiting rows are computed again; no intent: all of them are.
update duebook.calendar_state as c
set
    account_id = coalesce(:account_id::text, c.account_id),
    intent_id = coalesce(:intent_id::bigint, c.intent_id),
    recomputed_at = case when :intent_id::bigint is null then clock_timestamp() end;
