-- name: doubt_lost_intents
-- What a run lost by a restore may have promised before is in doubt and not due.
select duebook.doubt_lost_intents(:run_id, :provider_account) as doubtful;
