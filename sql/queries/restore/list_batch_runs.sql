-- name: list_batch_runs
-- The newest run of each provider account among the intents of a batch. Runs of one provider
-- account are numbered in the order in which they commit, so that it stands for those before it.
select
    i.provider_account,
    max(i.run_id) as run_id
from duebook.batch as b
cross join lateral unnest(b.account_ids, b.intent_ids) as w (account_id, intent_id)
inner join duebook.intent as i on w.account_id = i.account_id and w.intent_id = i.intent_id
where b.batch_id = :batch_id::bigint and i.run_id is not null
group by i.provider_account;
