-- What settlement files state about their own rows, and whether these come to it.
create or replace view duebook_reports.settlement_file_checks as
select
    c.provider_account,
    f.name as file,
    f.received_at,
    c.section,
    nullif(c.currency, '') as currency,
    c.check_name,
    c.stated_minor,
    c.computed_minor,
    duebook.major_amount(c.stated_minor, c.currency, a.provider) as stated,
    duebook.major_amount(c.computed_minor, c.currency, a.provider) as computed,
    c.is_ok,
    f.run_id
from duebook.settlement_file_check as c
inner join duebook.settlement_file as f on c.file_id = f.file_id
left join duebook.provider_account as a on c.provider_account = a.provider_account;

comment on view duebook_reports.settlement_file_checks is
'What settlement files state about their own rows (totals by currency), beside what the rows come to. A file without its totals was cut.';
comment on column duebook_reports.settlement_file_checks.provider_account is 'Account the file belongs to.';
comment on column duebook_reports.settlement_file_checks.file is 'File name.';
comment on column duebook_reports.settlement_file_checks.received_at is 'When it was taken.';
comment on column duebook_reports.settlement_file_checks.section is 'Part of the file: section 1, or report.';
comment on column duebook_reports.settlement_file_checks.currency is 'Currency of the amounts; null where the statement names none.';
comment on column duebook_reports.settlement_file_checks.check_name is 'gross_credit, gross_debit, fee_credit, fee_debit; section_footer: the totals are missing; totals: they are no numbers.';
comment on column duebook_reports.settlement_file_checks.stated_minor is 'What the file states, minor units.';
comment on column duebook_reports.settlement_file_checks.computed_minor is 'What its rows come to, minor units.';
comment on column duebook_reports.settlement_file_checks.stated is 'What the file states, major units, exact.';
comment on column duebook_reports.settlement_file_checks.computed is 'What its rows come to, major units, exact.';
comment on column duebook_reports.settlement_file_checks.is_ok is 'Whether the rows come to what is stated.';
comment on column duebook_reports.settlement_file_checks.run_id is 'Run that took the file.';
