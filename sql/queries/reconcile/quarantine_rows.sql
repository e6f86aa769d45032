-- name: quarantine_rows
-- Keeps every row that could not be read. One of an API is kept once, however often it is told.
insert into duebook.quarantined_row (
    source_kind,
    provider_account,
    run_id,
    file_sha256,
    file_name,
    line_no,
    column_name,
    value,
    reason,
    expected,
    raw
)
select
    'settlement',
    :provider_account,
    :run_id,
    s.sha256,
    s.name,
    j.line_no,
    j.column_name,
    j.value,
    j.reason,
    j.expected,
    j.raw
from staged_reject as j
inner join staged_source as s on j.source_no = s.source_no
where
    s.sha256 is not null
    or not exists (
        select from duebook.quarantined_row as q
        where
            q.source_kind = 'settlement'
            and q.provider_account = :provider_account
            and q.file_sha256 is null
            and (q.column_name, q.value, q.reason)
            is not distinct from (j.column_name, j.value, j.reason)
    )
order by j.source_no, j.line_no
on conflict do nothing;
