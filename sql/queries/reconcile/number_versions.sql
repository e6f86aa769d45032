-- name: number_versions
-- The next version number of entries that have versions already.
update applied_entry as a
set
    version = 1 + (
        select coalesce(max(v.version), 0)
        from duebook.settlement_entry_version as v
        where v.provider_account = :provider_account and v.entry_id = a.entry_id
    )
where a.change <> 'new';
