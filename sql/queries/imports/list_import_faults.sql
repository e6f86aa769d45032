-- name: list_import_faults
-- The first rows that could not be read, for the person at the terminal.
select
    j.line_no,
    j.column_name,
    j.value,
    j.reason,
    j.expected
from staged_reject as j
order by j.line_no
limit 100;
