-- name: write_file_checks
-- Keeps what the files of this run state about their own rows, beside what these come to. Amounts
-- arrive in major units. A file that another run took meanwhile has no file_id and is left out.
insert into duebook.settlement_file_check (
    file_id, section, currency, check_name, provider_account, stated_minor, computed_minor, is_ok
)
select
    s.file_id,
    c.section,
    coalesce(c.currency, ''),
    c.check_name,
    :provider_account,
    (c.stated * coalesce(x.factor, 100))::bigint,
    (c.computed * coalesce(x.factor, 100))::bigint,
    c.stated is not null and c.stated = c.computed
from
    unnest(
        :source_nos::integer[], :sections::text[], :check_currencies::text[], :check_names::text[],
        :stated::numeric[], :computed::numeric[]
    ) as c (source_no, section, currency, check_name, stated, computed)
inner join staged_source as s on c.source_no = s.source_no and s.file_id is not null
left join staged_exponent as x on c.currency = x.currency
on conflict do nothing;
