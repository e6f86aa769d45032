-- name: read_gate_rules
-- What the gate needs once a window, as of now: environment, channel, budget, quiet hours,
-- pauses, kinds. Pauses of accounts may be many: those of a window's are read by themselves.
select
    duebook.environment_refusal(:environment::text) as environment_refusal,
    duebook.sweep_paused_by() as sweep_paused_by,
    coalesce(
        (select c.enabled from duebook.channel as c where c.channel = :channel::text),
        true
    ) as is_channel_enabled,
    case when b.probe_batch_id = :batch_id::bigint then null else b.paused_until end
        as paused_until,
    coalesce(b.probe_batch_id = :batch_id::bigint, false) as is_probe,
    b.tokens is not null as has_tokens,
    coalesce(b.consecutive_pauses, 0) as consecutive_pauses,
    (
        select
            jsonb_agg(
                jsonb_build_array(q.region, q.kind, q.from_local::text, q.until_local::text)
                order by q.quiet_hours_id
            )
        from duebook.quiet_hours as q
        where q.channel is null or q.channel = :channel::text
    ) as quiet_hours,
    (
        select jsonb_agg(jsonb_build_array(p.scope, p.name, p.mode))
        from duebook.pause as p
        where p.scope in ('all', 'kind') or (p.scope = 'channel' and p.name = :channel::text)
    ) as pauses,
    exists(
        select from duebook.pause as p
        where p.scope = 'account'
    ) as has_account_pauses,
    exists(
        select from duebook.contact_cap as c
        where c.channel in ('*', :channel::text)
    ) as has_contact_caps,
    (
        select
            jsonb_object_agg(
                k.kind,
                jsonb_build_array(
                    k.catch_up,
                    extract(epoch from k.catch_up_window),
                    k.max_occurrences,
                    k.spread_per_minute,
                    k.max_tries,
                    k.is_critical,
                    k.digest_most
                )
            )
        from duebook.intent_kind as k
    ) as kinds
from (select true as only_row) as one
left join duebook.budget as b on b.channel = :channel::text;
