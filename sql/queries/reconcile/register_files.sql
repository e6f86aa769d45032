-- name: register_files
-- Takes each file once: one that another run took meanwhile keeps no file_id here.
with registered as (
    insert into duebook.settlement_file (
        provider_account,
        sha256,
        name,
        size_bytes,
        row_count,
        quarantined_count,
        source_order,
        run_id
    )
    select
        :provider_account,
        s.sha256,
        s.name,
        s.size_bytes,
        s.row_count,
        s.quarantined_count,
        s.source_order,
        :run_id
    from staged_source as s
    where s.sha256 is not null
    order by s.source_no
    on conflict (provider_account, sha256) where withdrawn_at is null do nothing
    returning sha256, file_id
)

update staged_source as s
set file_id = r.file_id
from registered as r
where s.sha256 = r.sha256;
