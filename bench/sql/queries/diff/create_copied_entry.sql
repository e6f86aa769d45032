-- name: create_copied_entry
-- Where a settlement file is put as it is, and nothing else.
create table copied_entry (
    entry_id text,
    provider_type text,
    batch_ref text,
    payment_ref text,
    gross text,
    fee text,
    net text,
    currency text,
    occurred text,
    entry_status text
);
