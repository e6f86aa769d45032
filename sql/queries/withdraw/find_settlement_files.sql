-- name: find_settlement_files
-- Files of a provider account by name or by the beginning of their checksum, the newest first.
select
    f.file_id,
    f.name,
    f.sha256,
    f.received_at,
    f.row_count,
    f.quarantined_count,
    f.run_id,
    f.withdrawn_at,
    f.withdrawn_by,
    f.withdrawn_because
from duebook.settlement_file as f
where
    f.provider_account = :provider_account::text
    and (
        :file::text is null
        or f.name = :file::text
        or (char_length(:file::text) >= 6 and starts_with(f.sha256, lower(:file::text)))
    )
order by f.file_id desc
limit :row_limit::bigint;
