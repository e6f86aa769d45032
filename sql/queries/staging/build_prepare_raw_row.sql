-- name: build_prepare_raw_row
-- The statement that readies raw_row for one file: its number, its first line, its unknown columns.
select
    format(
        'alter table raw_row alter column source_no set default %s, '
        'alter column line_no restart with %s',
        :source_no::integer,
        :first_line::bigint
    )
    || coalesce(
        (
            select string_agg(format(', add column if not exists %I text', f.field), '')
            from unnest(:extra_fields::text[]) as f (field)
        ),
        ''
    ) as statement;
