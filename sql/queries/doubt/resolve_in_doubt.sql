-- name: resolve_in_doubt
-- Ends the doubt about intents: sent, or back in due.
select
    r.account_id,
    r.intent_id,
    r.done
from
    duebook.resolve_in_doubt(
        :account_ids::text[],
        :intent_ids::bigint[],
        :accepted::boolean,
        :not_before::timestamptz,
        :how::text,
        :why::text,
        :resolved_by::text
    ) as r;
