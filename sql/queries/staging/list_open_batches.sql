-- name: list_open_batches
-- Batches of which the provider may still name entries.
select distinct b.batch_ref
from duebook.settlement_batch as b
where b.provider_account = :provider_account and not b.is_complete and b.is_itemisable
order by b.batch_ref;
