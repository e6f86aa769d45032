-- name: quarantine_import_rows
-- Keeps every row of an import that could not be read.
insert into duebook.quarantined_row (
    source_kind, file_sha256, file_name, line_no, column_name, value, reason, expected, raw
)
select
    :source_kind,
    :sha256,
    :file_name,
    j.line_no,
    j.column_name,
    j.value,
    j.reason,
    j.expected,
    j.raw
from staged_reject as j
order by j.line_no
on conflict do nothing;
