-- name: write_batches
-- Sums of the affected batches by net currency. :completeness says whether a batch of this provider
-- is whole as told: always (a file of one batch), with its payout, or only when the provider says
-- so.
insert into duebook.settlement_batch as b (
    provider_account, batch_ref, currency, sum_minor, payout_minor, difference_minor, entry_count,
    status, is_itemisable, is_complete, run_id
)
select
    :provider_account,
    t.batch_ref,
    t.currency,
    t.sum_minor,
    t.payout_minor,
    t.sum_minor + t.payout_minor,
    t.entry_count,
    duebook.batch_status(
        t.sum_minor + t.payout_minor, t.has_payout, t.is_itemisable, t.is_complete
    ),
    t.is_itemisable,
    t.is_complete,
    :run_id
from (
    select
        s.*,
        coalesce(f.is_itemisable, o.is_itemisable, true) as is_itemisable,
        case :completeness::text
            when 'always' then true
            when 'with_payout' then s.has_payout
            else coalesce(f.is_complete, o.is_complete, false)
        end as is_complete
    from (
        select
            e.batch_ref,
            e.net_currency as currency,
            coalesce(sum(e.net_minor) filter (where e.entry_type <> 'payout'), 0)::bigint
                as sum_minor,
            coalesce(sum(e.net_minor) filter (where e.entry_type = 'payout'), 0)::bigint
                as payout_minor,
            bool_or(e.entry_type = 'payout') as has_payout,
            count(*)::integer as entry_count
        from affected_batch as a
        inner join duebook.settlement_entry as e
            on e.provider_account = :provider_account and a.batch_ref = e.batch_ref
        where e.entry_status <> 'withdrawn'
        group by e.batch_ref, e.net_currency
    ) as s
    left join staged_batch as f on s.batch_ref = f.batch_ref
    left join duebook.settlement_batch as o
        on
            o.provider_account = :provider_account
            and s.batch_ref = o.batch_ref
            and s.currency = o.currency
) as t
on conflict (provider_account, batch_ref, currency) do update
    set
        sum_minor = excluded.sum_minor,
        payout_minor = excluded.payout_minor,
        difference_minor = excluded.difference_minor,
        entry_count = excluded.entry_count,
        status = excluded.status,
        is_itemisable = excluded.is_itemisable,
        is_complete = excluded.is_complete,
        run_id = excluded.run_id,
        updated_at = clock_timestamp()
    where
    (
        b.sum_minor, b.payout_minor, b.entry_count, b.status, b.is_itemisable, b.is_complete
    )
    is distinct from
    (
        excluded.sum_minor, excluded.payout_minor, excluded.entry_count, excluded.status,
        excluded.is_itemisable, excluded.is_complete
    );
