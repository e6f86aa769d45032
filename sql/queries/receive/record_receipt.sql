-- name: record_receipt
-- Hands in one verified webhook, as the role that may do nothing else.
select
    duebook.record_receipt(
        :endpoint,
        :event_id,
        :provider_account,
        :scheme,
        :headers::jsonb,
        :body::bytea
    ) as verdict;
