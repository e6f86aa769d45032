-- name: resend_intent
-- Promises once more what has ended; returns the new key.
select
    duebook.resend_intent(
        :account_id::text, :operation_key::text, :reason::text, :resent_by::text
    ) as new_key;
