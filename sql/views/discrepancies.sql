-- Every difference between what a provider says and what the books say, open and closed.
create or replace view duebook_reports.discrepancies as
select
    d.provider_account,
    d.account_id,
    d.payment_id,
    d.batch_ref,
    d.entry_id,
    d.kind,
    d.subject,
    d.provider_minor,
    d.ledger_minor,
    d.currency,
    duebook.major_amount(d.provider_minor, d.currency, a.provider) as provider_amount,
    duebook.major_amount(d.ledger_minor, d.currency, a.provider) as ledger_amount,
    d.detail,
    d.status,
    case
        when d.closed_at is not null or d.status not in ('open', 'acknowledged') then d.severity
        else (array['low', 'normal', 'high', 'critical'])[s.rank]
    end as severity,
    d.first_seen_at,
    case
        when d.closed_at is null then greatest(d.last_seen_at, a.last_full_as_of)
        else d.last_seen_at
    end as last_seen_at,
    d.closed_at,
    (d.first_seen_at at time zone 'UTC')::date as first_seen_on_utc,
    (d.first_seen_at at time zone a.zone)::date as first_seen_on_provider,
    d.times_opened,
    d.opened_run_id,
    d.last_run_id,
    x.difference_minor,
    duebook.major_amount(x.difference_minor, d.currency, a.provider) as difference,
    x.age_days,
    d.assignee,
    w.actor as decided_by,
    w.reason as decided_because,
    w.at as decided_at
from duebook.discrepancy as d
left join duebook.provider_account as a on d.provider_account = a.provider_account
cross join
    lateral (
        select
            coalesce(d.provider_minor, 0) - coalesce(d.ledger_minor, 0) as difference_minor,
            greatest(
                extract(
                    day from coalesce(d.closed_at, a.last_full_as_of, d.last_seen_at)
                    - d.first_seen_at
                ),
                0
            )::integer as age_days
    ) as x
cross join
    lateral (
        select
            max(
                greatest(
                    array_position(array['low', 'normal', 'high', 'critical'], d.severity),
                    case
                        when abs(x.difference_minor) >= r.critical_minor then 4
                        when abs(x.difference_minor) >= r.high_minor then 3
                        when make_interval(days => x.age_days) >= r.critical_after then 4
                        when make_interval(days => x.age_days) >= r.high_after then 3
                        else 1
                    end
                )
            ) as rank
        from (
            select
                v.high_minor,
                v.critical_minor,
                v.high_after,
                v.critical_after
            from duebook.severity_rule as v
            where v.currency in ('*', d.currency)
            union all
            values (null::bigint, null::bigint, null::interval, null::interval)
        ) as r
    ) as s
left join lateral (
    select
        e.actor,
        e.reason,
        e.at
    from duebook.discrepancy_event as e
    where
        e.provider_account = d.provider_account
        and e.kind = d.kind
        and e.subject = d.subject
        and e.actor <> 'reconcile'
    order by e.event_id desc
    limit 1
) as w on true;

comment on view duebook_reports.discrepancies is
'Differences between the sides, open and closed; closed_at is null while a difference stands.';
comment on column duebook_reports.discrepancies.provider_account is 'Account whose run found it.';
comment on column duebook_reports.discrepancies.account_id is 'Customer account, where a payment is concerned.';
comment on column duebook_reports.discrepancies.payment_id is 'Payment, where one is concerned.';
comment on column duebook_reports.discrepancies.batch_ref is 'Batch, where one is concerned.';
comment on column duebook_reports.discrepancies.entry_id is 'Entry, where one is concerned.';
comment on column duebook_reports.discrepancies.kind is
'missing_in_ledger, missing_at_provider, amount_mismatch, currency_mismatch, status_mismatch, duplicate_reference, unexplained_remainder.';
comment on column duebook_reports.discrepancies.subject is 'What it is about: payment:…, entry:… or batch:….';
comment on column duebook_reports.discrepancies.provider_minor is 'What the provider says, minor units.';
comment on column duebook_reports.discrepancies.ledger_minor is 'What the books say, minor units.';
comment on column duebook_reports.discrepancies.currency is 'Currency of the amounts.';
comment on column duebook_reports.discrepancies.provider_amount is 'What the provider says, major units, exact.';
comment on column duebook_reports.discrepancies.ledger_amount is 'What the books say, major units, exact.';
comment on column duebook_reports.discrepancies.detail is 'What a reader needs to act: statuses, the other currency, how many payments.';
comment on column duebook_reports.discrepancies.status is
'open, acknowledged, resolved, ignored, written_off, or closed once it is gone.';
comment on column duebook_reports.discrepancies.severity is
'low, normal, high, critical: the worst of what its kind, its difference and its age say ([severity] in duebook.toml).';
comment on column duebook_reports.discrepancies.first_seen_at is 'As-of of the run that opened it first.';
comment on column duebook_reports.discrepancies.last_seen_at is 'As-of of the newest run that still saw it.';
comment on column duebook_reports.discrepancies.closed_at is 'When a run no longer saw it; null while it stands.';
comment on column duebook_reports.discrepancies.first_seen_on_utc is 'Day of first_seen_at in UTC.';
comment on column duebook_reports.discrepancies.first_seen_on_provider is 'Day of first_seen_at in the provider''s zone.';
comment on column duebook_reports.discrepancies.times_opened is 'How often it was opened.';
comment on column duebook_reports.discrepancies.opened_run_id is 'Run that opened it, or reopened it.';
comment on column duebook_reports.discrepancies.last_run_id is 'Newest run that wrote it.';
comment on column duebook_reports.discrepancies.difference_minor is 'What the provider says less what the books say, minor units; one that is missing counts as 0.';
comment on column duebook_reports.discrepancies.difference is 'The same, major units, exact.';
comment on column duebook_reports.discrepancies.age_days is 'Whole days from when it was seen first to the last full run, or to when it closed.';
comment on column duebook_reports.discrepancies.assignee is 'Who works on it; null: nobody yet.';
comment on column duebook_reports.discrepancies.decided_by is 'Who did something with it last; null: nobody.';
comment on column duebook_reports.discrepancies.decided_because is 'Why, as that person wrote it.';
comment on column duebook_reports.discrepancies.decided_at is 'When.';
