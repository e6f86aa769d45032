-- Suppresses the accounts of reported messages whose outcome is there by now: those of p_reports,
-- or without it the oldest thousand that wait. Returns how many accounts were suppressed.
create or replace function duebook.settle_delivery_reports(p_reports bigint[] default null)
returns integer
language sql
set search_path = ''
as $$
    with picked as materialized (
        select p.delivery_report_id, p.give_up_at
        from duebook.pending_report as p
        where p_reports is null or p.delivery_report_id = any(p_reports)
        order by p.delivery_report_id
        limit 1000
        for update skip locked
    ),
    found as materialized (
        select
            p.delivery_report_id,
            r.reported_at,
            o.account_id,
            r.channel,
            r.suppression,
            case r.status when 'complained' then 'recipient' else 'provider' end as source
        from picked as p
        inner join duebook.delivery_report as r on p.delivery_report_id = r.delivery_report_id
        inner join duebook.outcome as o on r.provider_message_id = o.provider_message_id
        inner join duebook.intent as i
            on o.account_id = i.account_id and o.intent_id = i.intent_id and r.channel = i.channel
    ),
    settled as (
        delete from duebook.pending_report as q
        using picked as p
        where
            q.delivery_report_id = p.delivery_report_id
            and (
                p.give_up_at <= pg_catalog.clock_timestamp()
                or p.delivery_report_id in (select f.delivery_report_id from found as f)
            )
    ),
    suppressed as (
        insert into duebook.suppression as s (account_id, channel, reason, source)
        select distinct on (f.account_id, f.channel)
            f.account_id, f.channel, f.suppression, f.source
        from found as f
        order by f.account_id, f.channel, f.reported_at
        on conflict do nothing
        returning s.account_id
    )
    select pg_catalog.count(*)::integer from suppressed;
$$;
comment on function duebook.settle_delivery_reports(bigint[]) is
'Suppresses the accounts of reported messages whose outcome is there by now. Returns how many.';
