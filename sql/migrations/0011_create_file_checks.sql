-- What files state about their own rows, held against them.

create table duebook.settlement_file_check (
    file_id bigint not null,
    section text not null,
    currency text not null default '',
    check_name text not null,
    provider_account text not null,
    stated_minor bigint,
    computed_minor bigint,
    is_ok boolean not null,
    checked_at timestamptz not null default clock_timestamp(),
    primary key (file_id, section, currency, check_name),
    constraint check_name_is_known check (
        check_name in (
            'gross_credit', 'gross_debit', 'fee_credit', 'fee_debit', 'section_footer', 'totals'
        )
    )
);
create index settlement_file_check_failed
on duebook.settlement_file_check (provider_account, file_id) where not is_ok;
comment on table duebook.settlement_file_check is
'What a settlement file states about its own rows, held against them. A statement that does not hold flags the file and refuses nothing. Append-only.';
comment on column duebook.settlement_file_check.file_id is 'File.';
comment on column duebook.settlement_file_check.section is 'Part of the file that the statement is about: section 1, or report.';
comment on column duebook.settlement_file_check.currency is 'Currency of the amounts; empty where the statement names none.';
comment on column duebook.settlement_file_check.check_name is 'gross_credit, gross_debit, fee_credit, fee_debit: a total; section_footer: the totals are missing, so the file was cut; totals: they are no numbers.';
comment on column duebook.settlement_file_check.provider_account is 'Account the file belongs to.';
comment on column duebook.settlement_file_check.stated_minor is 'What the file states, minor units; null: nothing.';
comment on column duebook.settlement_file_check.computed_minor is 'What its rows come to, minor units.';
comment on column duebook.settlement_file_check.is_ok is 'Whether the rows come to what is stated.';
comment on column duebook.settlement_file_check.checked_at is 'When.';
