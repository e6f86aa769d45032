-- name: build_copy_numbered_row
-- The statement that takes rows one by one, each with its line.
select
    format(
        'copy raw_row (line_no, %s) from stdin',
        string_agg(format('%I', f.field), ', ' order by f.position)
    ) as statement
from unnest(:fields::text[]) with ordinality as f (field, position);
