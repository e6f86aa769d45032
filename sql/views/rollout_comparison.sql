-- What Duebook would tell, or told, beside what an old sender told, one row a key, night by night.
--
-- A send is matched by its operation key; one without a key by account, payment and kind, the first
-- of ours with the first of theirs. A key that was asked for and then reported is one send, at the
-- reported time. What newer evidence ended only after its time had come would have been sent.
create or replace view duebook_reports.rollout_comparison as
with ours as materialized (
    select
        i.account_id,
        i.intent_id,
        i.operation_key,
        i.kind,
        i.channel,
        i.payment_id,
        i.provider_account,
        i.run_id,
        i.change_id,
        i.cohort_version,
        duebook.current_ownership(i.account_id, i.intent_id, i.ownership) as ownership,
        i.notify_at,
        o.result,
        o.ended_at
    from duebook.intent as i
    left join duebook.outcome as o
        on i.account_id = o.account_id and i.operation_key = o.operation_key
    where
        i.run_id is not null
        and i.operation_key not like 'resend:%'
        and i.ownership <> 'dry_run'
        and exists (select from duebook.old_sender)
),

keyed as materialized (
    select
        s.account_id,
        s.operation_key,
        s.sender,
        min(s.kind) as kind,
        min(s.channel) as channel,
        min(s.payment_id) as payment_id,
        coalesce(
            min(s.sent_at) filter (where s.source <> 'asked'), min(s.sent_at)
        ) as sent_at,
        greatest(count(*) filter (where s.source <> 'asked'), 1) as send_count,
        string_agg(distinct s.source, ', ') as source,
        min(s.external_id) as external_id
    from duebook.observed_send as s
    where s.operation_key is not null
    group by s.account_id, s.operation_key, s.sender
),

our_turn as (
    select
        o.account_id,
        o.intent_id,
        o.payment_id,
        o.kind,
        row_number() over (
            partition by o.account_id, o.payment_id, o.kind
            order by o.notify_at, o.intent_id
        ) as turn
    from ours as o
    where
        not exists (
            select from keyed as k
            where k.account_id = o.account_id and k.operation_key = o.operation_key
        )
),

their_turn as (
    select
        s.*,
        row_number() over (
            partition by s.account_id, s.payment_id, s.kind, s.sender
            order by s.sent_at, s.observed_send_id
        ) as turn
    from duebook.observed_send as s
    where s.operation_key is null
),

theirs as (
    select
        k.account_id,
        o.intent_id,
        k.operation_key,
        k.sender,
        k.kind,
        k.channel,
        k.payment_id,
        k.sent_at,
        k.send_count,
        k.source,
        k.external_id
    from keyed as k
    left join ours as o
        on k.account_id = o.account_id and k.operation_key = o.operation_key
    union all
    select
        t.account_id,
        u.intent_id,
        null,
        t.sender,
        t.kind,
        t.channel,
        t.payment_id,
        t.sent_at,
        1,
        t.source,
        t.external_id
    from their_turn as t
    left join our_turn as u
        on
            t.account_id = u.account_id
            and t.payment_id = u.payment_id
            and t.kind = u.kind
            and t.turn = u.turn
),

paired as (
    select
        coalesce(o.account_id, t.account_id) as account_id,
        coalesce(
            o.payment_id,
            t.payment_id,
            case
                when b.provider_account is not null
                    then
                        replace(
                            replace(split_part(t.operation_key, ':', 4), '%3A', ':'), '%25', '%'
                        )
            end
        ) as payment_id,
        coalesce(o.kind, t.kind) as kind,
        coalesce(o.channel, t.channel) as channel,
        coalesce(o.operation_key, t.operation_key) as operation_key,
        coalesce(o.provider_account, b.provider_account) as provider_account,
        o.intent_id,
        o.run_id,
        o.change_id,
        o.ownership,
        nullif(o.cohort_version, 0) as cohort_version,
        o.notify_at as ours_at,
        o.intent_id is not null
        and (o.result is distinct from 'expired' or o.ended_at > o.notify_at) as is_ours,
        coalesce(o.result = 'sent', false) as is_sent_by_us,
        t.sender,
        t.sent_at as theirs_at,
        coalesce(t.send_count, 0) as send_count,
        t.source,
        t.external_id,
        coalesce(d.same_within, w.same_within) as same_within
    from ours as o
    full join theirs as t on o.account_id = t.account_id and o.intent_id = t.intent_id
    left join duebook.old_sender as d on t.sender = d.sender
    left join duebook.provider_account as b
        on split_part(t.operation_key, ':', 3) = duebook.key_part(b.provider_account)
    cross join (
        select max(s.same_within) as same_within
        from duebook.old_sender as s
    ) as w
)

select
    (coalesce(r.as_of, p.theirs_at) at time zone coalesce(a.zone, 'UTC'))::date as night,
    p.provider_account,
    p.account_id,
    p.payment_id,
    p.kind,
    p.channel,
    p.operation_key,
    case
        when p.sender is null and not p.is_ours then 'neither'
        when
            p.sender is null
            and p.ownership <> 'live'
            and clock_timestamp() < p.ours_at + p.same_within then 'waiting'
        when p.sender is null then 'only_ours'
        when not p.is_ours then 'only_theirs'
        when p.theirs_at > p.ours_at + p.same_within then 'earlier'
        when p.theirs_at < p.ours_at - p.same_within then 'later'
        else 'both'
    end as verdict,
    p.ownership,
    c.cohort,
    p.cohort_version,
    p.ours_at,
    p.theirs_at,
    p.is_sent_by_us,
    p.send_count::integer as theirs_count,
    p.is_sent_by_us::integer + p.send_count > 1 as is_doubled,
    p.run_id,
    l.entry_id,
    l.entry_version,
    l.before_status,
    l.after_status,
    p.sender,
    p.source,
    p.external_id
from paired as p
left join duebook.reconciliation_run as r on p.run_id = r.run_id
left join duebook.provider_account as a on p.provider_account = a.provider_account
left join duebook.cohort as c on p.cohort_version = c.cohort_version
left join duebook.ledger_change as l
    on p.account_id = l.account_id and p.change_id = l.change_id;
comment on view duebook_reports.rollout_comparison is
'What Duebook would tell, or told, beside what an old sender told, one row a key, with the evidence of both. Empty without an old sender.';
comment on column duebook_reports.rollout_comparison.night is
'Day of the run that promised it, in the provider''s zone; of what is only theirs, the day of the send.';
comment on column duebook_reports.rollout_comparison.provider_account is 'Provider account whose evidence it is about.';
comment on column duebook_reports.rollout_comparison.account_id is 'Customer account.';
comment on column duebook_reports.rollout_comparison.payment_id is 'Payment; null where only a key is known that names none.';
comment on column duebook_reports.rollout_comparison.kind is 'Kind of notice.';
comment on column duebook_reports.rollout_comparison.channel is 'Channel.';
comment on column duebook_reports.rollout_comparison.operation_key is 'Operation key; null where theirs came without and none of ours fits.';
comment on column duebook_reports.rollout_comparison.verdict is
'both; only_ours; only_theirs; earlier: ours is the earlier by more than same_within; later: ours is the later; waiting: theirs may still come; neither: ours ended before its time and theirs did not come.';
comment on column duebook_reports.rollout_comparison.ownership is 'Whose the key is: shadow, the old sender''s; live, Duebook''s.';
comment on column duebook_reports.rollout_comparison.cohort is 'Cohort that decided it; null: the provider account''s mode.';
comment on column duebook_reports.rollout_comparison.cohort_version is 'Version of that cohort.';
comment on column duebook_reports.rollout_comparison.ours_at is 'When ours is, or was, to be sent.';
comment on column duebook_reports.rollout_comparison.theirs_at is 'When theirs was sent.';
comment on column duebook_reports.rollout_comparison.is_sent_by_us is 'Whether ours was sent.';
comment on column duebook_reports.rollout_comparison.theirs_count is 'How often they sent it.';
comment on column duebook_reports.rollout_comparison.is_doubled is 'Whether the customer was told more than once.';
comment on column duebook_reports.rollout_comparison.run_id is 'Run that promised ours.';
comment on column duebook_reports.rollout_comparison.entry_id is 'Settlement entry that is the evidence.';
comment on column duebook_reports.rollout_comparison.entry_version is 'Version of that entry.';
comment on column duebook_reports.rollout_comparison.before_status is 'Status of the payment before.';
comment on column duebook_reports.rollout_comparison.after_status is 'Status of the payment after.';
comment on column duebook_reports.rollout_comparison.sender is 'Old sender.';
comment on column duebook_reports.rollout_comparison.source is 'How we know of theirs.';
comment on column duebook_reports.rollout_comparison.external_id is 'Their own id of it.';
