-- name: find_known_files
-- Which of these checksums were taken before and were not withdrawn since.
select f.sha256
from duebook.settlement_file as f
where
    f.provider_account = :provider_account
    and f.sha256 = any(:checksums::text[])
    and f.withdrawn_at is null;
