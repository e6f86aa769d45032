-- name: adopt_late_results
-- Ends keys that an earlier attempt of theirs is known to have sent.
select
    duebook.append_outcomes(
        :account_ids::text[], :intent_ids::bigint[], :attempt_nos::integer[]
    ) as ended;
