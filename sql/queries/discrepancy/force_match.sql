-- name: force_match
-- Matches an entry with a payment whatever its reference says.
select
    duebook.force_match(
        :provider_account::text, :entry_id::text, :account_id::text, :payment_id::text, :by::text,
        :reason::text
    ) as done;
