-- name: create_adyen_identity
-- Identity of every raw row that has one of its own (null: a row of the account): as in stage_adyen.
create temporary view raw_identity as
select
    r.source_no,
    r.line_no,
    case
        when r.psp_reference is not null
            then concat(r.psp_reference, ':', lower(r.type), ':', r.modification_reference)
    end as entry_id
from raw_row as r;
