-- name: list_failed_file_checks
-- What the files of this run state about themselves and their rows do not come to.
select
    s.name as file,
    c.section,
    c.currency,
    c.check_name,
    c.stated_minor,
    c.computed_minor
from duebook.settlement_file_check as c
inner join staged_source as s on c.file_id = s.file_id
where not c.is_ok
order by s.source_no, c.section, c.currency, c.check_name;
