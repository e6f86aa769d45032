-- name: resend_intent
-- Promises once more what has ended; returns the new key. With a number, once for that number.
select
    duebook.resend_intent(
        :account_id::text, :operation_key::text, :reason::text, :resent_by::text,
        :number::integer
    ) as new_key;
