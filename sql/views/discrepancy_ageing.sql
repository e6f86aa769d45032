-- How long differences have stood: what still wants somebody, by account, kind, currency and age.
create or replace view duebook_reports.discrepancy_ageing as
select
    d.provider_account,
    d.kind,
    d.currency,
    b.age_bucket,
    b.from_days,
    count(*) as discrepancies,
    count(*) filter (where d.assignee is null) as unassigned,
    count(*) filter (where d.severity = 'critical') as critical,
    sum(abs(d.difference_minor))::bigint as difference_minor,
    sum(abs(d.difference)) as difference,
    min(d.first_seen_at) as oldest_first_seen_at
from duebook_reports.discrepancies as d
inner join (
    values
    ('0-1', 0, 1),
    ('2-5', 2, 5),
    ('6-10', 6, 10),
    ('11-30', 11, 30),
    ('over 30', 31, null)
) as b (age_bucket, from_days, until_days)
    on d.age_days >= b.from_days and (b.until_days is null or d.age_days <= b.until_days)
where d.closed_at is null and d.status in ('open', 'acknowledged')
group by d.provider_account, d.kind, d.currency, b.age_bucket, b.from_days;

comment on view duebook_reports.discrepancy_ageing is
'How long differences that still want somebody have stood, by account, kind, currency and age in days.';
comment on column duebook_reports.discrepancy_ageing.provider_account is 'Account whose run found them.';
comment on column duebook_reports.discrepancy_ageing.kind is 'What differs.';
comment on column duebook_reports.discrepancy_ageing.currency is 'Currency of the amounts.';
comment on column duebook_reports.discrepancy_ageing.age_bucket is 'Days since they were seen first: 0-1, 2-5, 6-10, 11-30, over 30.';
comment on column duebook_reports.discrepancy_ageing.from_days is 'First day of the bucket: what to sort by.';
comment on column duebook_reports.discrepancy_ageing.discrepancies is 'How many.';
comment on column duebook_reports.discrepancy_ageing.unassigned is 'How many of them nobody works on.';
comment on column duebook_reports.discrepancy_ageing.critical is 'How many of them are critical.';
comment on column duebook_reports.discrepancy_ageing.difference_minor is 'Sum of the differences, each without its sign, minor units.';
comment on column duebook_reports.discrepancy_ageing.difference is 'The same, major units, exact.';
comment on column duebook_reports.discrepancy_ageing.oldest_first_seen_at is 'When the oldest of them was seen first.';
