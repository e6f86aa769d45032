-- How deliveries go: tries by UTC day, channel, kind and how they went. What was claimed and set
-- aside again without a try is not counted.
create or replace view duebook_reports.delivery_health as
select
    (r.finished_at at time zone 'UTC')::date as day_utc,
    i.channel,
    i.kind,
    r.result,
    r.reason,
    r.provider_code,
    count(*) as results,
    count(distinct i.intent_id) as intents,
    count(*) filter (where r.is_late) as late,
    max(r.attempt_no) as most_claims,
    percentile_disc(0.5) within group (order by r.finished_at - a.due_at) as median_delay,
    percentile_disc(0.99) within group (order by r.finished_at - a.due_at) as p99_delay,
    max(r.finished_at) as last_at
from duebook.attempt_result as r
inner join duebook.intent as i on r.account_id = i.account_id and r.intent_id = i.intent_id
left join duebook.attempt as a
    on
        r.account_id = a.account_id
        and r.intent_id = a.intent_id
        and r.attempt_no = a.attempt_no
where r.result <> 'skipped' and i.channel <> 'internal'
group by 1, 2, 3, 4, 5, 6;

comment on view duebook_reports.delivery_health is
'How deliveries go: tries by UTC day, channel, kind and how they went.';
comment on column duebook_reports.delivery_health.day_utc is 'UTC day on which the answer was there.';
comment on column duebook_reports.delivery_health.channel is 'Channel.';
comment on column duebook_reports.delivery_health.kind is 'Kind of notice.';
comment on column duebook_reports.delivery_health.result is 'How the tries went: sent, deferred, failed, unknown, held, expired.';
comment on column duebook_reports.delivery_health.reason is 'Why, in the gate''s words or the channel''s.';
comment on column duebook_reports.delivery_health.provider_code is 'Code of the provider''s answer.';
comment on column duebook_reports.delivery_health.results is 'How many tries went so.';
comment on column duebook_reports.delivery_health.intents is 'Of how many notices.';
comment on column duebook_reports.delivery_health.late is 'How many were told after the sender''s claim had been taken from it.';
comment on column duebook_reports.delivery_health.most_claims is 'Most claims that one of them has had.';
comment on column duebook_reports.delivery_health.median_delay is 'Median of answer less due time.';
comment on column duebook_reports.delivery_health.p99_delay is '99th percentile of answer less due time.';
comment on column duebook_reports.delivery_health.last_at is 'When the last of them was answered.';
