-- name: count_known_rows
-- Rows of files that were taken before; they count as unchanged, once for each time they were
-- given.
select coalesce(sum(f.row_count - f.quarantined_count), 0)::bigint as entries
from unnest(:checksums::text[]) as g (sha256)
inner join duebook.settlement_file as f
    on
        f.provider_account = :provider_account
        and g.sha256 = f.sha256
        and f.withdrawn_at is null;
