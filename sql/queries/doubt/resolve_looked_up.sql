-- name: resolve_looked_up
-- Ends the doubt about what was looked up. "Not known" counts only from look_up_from plus the
-- provider's stated delay on, by the clock of the database; "accepted" counts at any time.
select
    r.account_id,
    r.intent_id,
    r.done
from
    duebook.resolve_in_doubt(
        :account_ids::text[],
        :intent_ids::bigint[],
        :accepted::boolean,
        case
            when not :accepted::boolean
                then clock_timestamp() - :known_within::interval
        end,
        :how::text,
        :why::text,
        :resolved_by::text
    ) as r;
