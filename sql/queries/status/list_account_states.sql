-- name: list_account_states
-- How each provider account stands: its mode, its newest runs, how fresh, what is open.
select
    a.provider_account,
    a.provider,
    a.mode,
    a.notify_from,
    a.last_full_as_of,
    a.cursor_position,
    r.run_id as last_run_id,
    r.scope as last_run_scope,
    r.committed_at as last_run_at,
    r.as_of as last_run_as_of,
    r.quarantined as last_run_quarantined,
    f.committed_at as last_full_at,
    n.expected_by,
    coalesce(n.is_late, false) as is_late,
    coalesce(d.kinds, '{}'::jsonb) as discrepancies,
    coalesce(d.open_count, 0) as discrepancy_count,
    (
        select count(*) from duebook.settlement_batch as b
        where b.provider_account = a.provider_account and b.status = 'not_closed'
    ) as batches_not_closed,
    (
        select count(*) from duebook.quarantined_row as q
        where
            q.source_kind = 'settlement'
            and coalesce(q.provider_account, '') = a.provider_account
    ) as quarantined
from duebook.provider_account as a
left outer join lateral (
    select
        w.run_id,
        w.scope,
        w.committed_at,
        w.as_of,
        w.quarantined
    from duebook.reconciliation_run as w
    where w.provider_account = a.provider_account
    order by w.run_id desc
    limit 1
) as r on true
left outer join duebook.reconciliation_run as f on a.last_full_run_id = f.run_id
left outer join duebook_reports.freshness as n on a.provider_account = n.provider_account
left outer join lateral (
    select
        jsonb_object_agg(k.kind, k.open_count order by k.kind) as kinds,
        sum(k.open_count)::bigint as open_count
    from (
        select
            o.kind,
            count(*) as open_count
        from duebook.discrepancy as o
        where
            o.provider_account = a.provider_account
            and o.closed_at is null
            and o.status in ('open', 'acknowledged')
        group by o.kind
    ) as k
) as d on true
order by a.provider_account;
