-- What an incident comes to, as of now: times and people, the policies that applied, what was due
-- beside its outcomes, what stands elsewhere, what differs, and what is in doubt.
--
-- It differs where an intent is nowhere, in a batch, or due: of those whose due time was moved
-- meanwhile, only when they are past it for longer than the band. No amount, no address.
create or replace function duebook.incident_report(p_incident_id bigint) returns jsonb
language sql
stable
set search_path = ''
as $$
    with incident as (
        select
            i.*,
            pg_catalog.clock_timestamp() as at
        from duebook.incident as i
        where i.incident_id = p_incident_id
    ),
    fate as materialized (
        select
            f.*,
            f.place in ('nowhere', 'batch')
            or (
                f.place = 'due'
                and (f.stands_at <= f.was_due_at or f.stands_at < i.at - i.oldest_due_band)
            ) as differs
        from incident as i
        cross join lateral duebook.incident_fates(p_incident_id, i.at) as f
    ),
    counted as (
        select
            f.place,
            coalesce(f.reason, '') as reason,
            pg_catalog.count(*) as n
        from fate as f
        where not f.differs
        group by 1, 2
    ),
    by_reason as (
        select
            c.place,
            pg_catalog.sum(c.n) as n,
            pg_catalog.jsonb_object_agg(c.reason, c.n order by c.reason) as reasons
        from counted as c
        group by c.place
    ),
    backlog as (
        select pg_catalog.count(*) as n, pg_catalog.min(d.due_at) as oldest_at
        from duebook.due as d
        where d.due_at <= (select pg_catalog.clock_timestamp())
    )
    select
        pg_catalog.jsonb_build_object(
            'name', i.name,
            'reason', i.reason,
            'pauses_sweep', i.pauses_sweep,
            'band_s', extract(epoch from i.oldest_due_band)::bigint,
            'opened_by', i.opened_by,
            'opened_at', i.opened_at,
            'resumed_by', i.resumed_by,
            'resumed_at', i.resumed_at,
            'closed_by', i.closed_by,
            'closed_at', i.closed_at,
            'as_of', i.at,
            'lasted_s', extract(epoch from coalesce(i.closed_at, i.at) - i.opened_at)::bigint,
            'due', (select pg_catalog.count(*) from fate),
            'outcomes', pg_catalog.jsonb_build_object(
                'sent', coalesce((select r.n from by_reason as r where r.place = 'sent'), 0),
                'done', coalesce((select r.n from by_reason as r where r.place = 'done'), 0),
                'expired', coalesce(
                    (select r.reasons from by_reason as r where r.place = 'expired'), '{}'
                )
            ),
            'elsewhere', pg_catalog.jsonb_build_object(
                'held', coalesce((select r.reasons from by_reason as r where r.place = 'held'), '{}'),
                'in_doubt', coalesce(
                    (select r.n from by_reason as r where r.place = 'in_doubt'), 0
                ),
                'later', coalesce(
                    (select r.reasons from by_reason as r where r.place = 'later'), '{}'
                ),
                'due_again', coalesce((select r.n from by_reason as r where r.place = 'due'), 0),
                'proposed', coalesce(
                    (select r.n from by_reason as r where r.place = 'proposed'), 0
                )
            ),
            'differs', (
                select
                    coalesce(pg_catalog.jsonb_object_agg(x.place, x.n order by x.place), '{}')
                from (
                    select f.place, pg_catalog.count(*) as n
                    from fate as f
                    where f.differs
                    group by f.place
                ) as x
            ),
            'differing_keys', (
                select
                    coalesce(
                        pg_catalog.jsonb_agg(
                            pg_catalog.jsonb_build_object(
                                'account_id', x.account_id,
                                'operation_key', x.operation_key,
                                'place', x.place,
                                'due_at', x.was_due_at
                            )
                            order by x.was_due_at, x.account_id, x.operation_key
                        ),
                        '[]'
                    )
                from (
                    select f.*
                    from fate as f
                    where f.differs
                    order by f.was_due_at, f.account_id, f.operation_key
                    limit 20
                ) as x
            ),
            'backlog', b.n,
            'oldest_due_s', coalesce(
                pg_catalog.round(extract(epoch from i.at - b.oldest_at), 3), 0
            ),
            'in_doubt', (select pg_catalog.count(*) from duebook.in_doubt),
            'in_doubt_keys', (
                select
                    coalesce(
                        pg_catalog.jsonb_agg(
                            pg_catalog.jsonb_build_object(
                                'account_id', x.account_id,
                                'operation_key', x.operation_key,
                                'cause', x.cause,
                                'since', x.since
                            )
                            order by x.since, x.account_id, x.operation_key
                        ),
                        '[]'
                    )
                from (
                    select u.account_id, w.operation_key, u.cause, u.since
                    from duebook.in_doubt as u
                    left join duebook.intent as w
                        on u.account_id = w.account_id and u.intent_id = w.intent_id
                    order by u.since, u.account_id, u.intent_id
                    limit 1000
                ) as x
            ),
            'policies', case
                when i.resumed_at is null then duebook.incident_policies(i.incident_id)
                else i.policies
            end,
            'policy_changes', (
                select
                    coalesce(
                        pg_catalog.jsonb_agg(
                            pg_catalog.jsonb_build_object(
                                'at', e.happened_at,
                                'by', e.actor,
                                'action', e.action,
                                'subject', e.subject
                            )
                            order by e.audit_event_id
                        ),
                        '[]'
                    )
                from duebook.audit_event as e
                where
                    -- By number, which is the order of writing: instants have no index of their own.
                    e.audit_event_id > (
                        select pg_catalog.max(o.audit_event_id)
                        from duebook.audit_event as o
                        where
                            o.subject = 'incident:' || i.name
                            and o.action = 'open_incident'
                    )
                    and e.action in (
                        'apply_kind', 'put_schedule', 'changed_schedule', 'edited_schedule',
                        'cancel_schedule', 'pause', 'resume'
                    )
            ),
            'pauses', (
                select
                    coalesce(
                        pg_catalog.jsonb_agg(
                            pg_catalog.jsonb_build_object(
                                'scope', p.scope,
                                'name', p.name,
                                'mode', p.mode,
                                'by', p.paused_by,
                                'at', p.paused_at
                            )
                            order by p.scope, p.name
                        ),
                        '[]'
                    )
                from duebook.pause as p
            ),
            'samples', i.samples
        )
    from incident as i
    cross join backlog as b;
$$;
comment on function duebook.incident_report(bigint) is
'What an incident comes to, as of now: policies, what was due beside its outcomes, what differs, what is in doubt.';
