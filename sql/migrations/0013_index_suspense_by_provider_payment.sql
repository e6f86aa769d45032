-- Suspense is searched by the provider's reference too, where an account matches on it.

-- Partial: what is in suspense is little, and only runs write entries while it is made.
-- squawk-ignore require-concurrent-index-creation
create index settlement_entry_in_suspense_by_provider
on duebook.settlement_entry (provider_payment_ref, provider_account)
where account_id is null and provider_payment_ref is not null;
