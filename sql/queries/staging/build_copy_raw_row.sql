-- name: build_copy_raw_row
-- The statement that takes a file's bytes as they are; an empty cell is null, quoted or not.
select
    format(
        'copy raw_row (%s) from stdin with (format csv, delimiter %L, encoding ''UTF8'', '
        'force_null (%s))',
        string_agg(format('%I', f.field), ', ' order by f.position),
        :delimiter::text,
        string_agg(format('%I', f.field), ', ' order by f.position)
    ) as statement
from unnest(:fields::text[]) with ordinality as f (field, position);
