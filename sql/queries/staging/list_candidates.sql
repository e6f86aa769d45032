-- name: list_candidates
-- With :is_filtered only rows whose text is not that of the current version of their entry: a
-- million unchanged rows need no parsing. Rows of the account, which have no identity yet, are
-- always read.
insert into candidate_row (source_no, line_no, source_hash)
select
    i.source_no,
    i.line_no,
    i.source_hash
from raw_identity as i
left join duebook.settlement_entry as c
    on
        :is_filtered::boolean
        and c.provider_account = :provider_account
        and i.entry_id = c.entry_id
where c.source_hash is distinct from i.source_hash;
