-- name: number_versions
-- The next version number of entries that have versions already. The current one counts also when
-- its row went by age: a number that was told is never given again.
update applied_entry as a
set
    version = 1 + greatest(
        (
            select max(v.version)
            from duebook.settlement_entry_version as v
            where v.provider_account = :provider_account and v.entry_id = a.entry_id
        ),
        (
            select e.version
            from duebook.settlement_entry as e
            where e.provider_account = :provider_account and e.entry_id = a.entry_id
        ),
        0
    )
where a.change <> 'new';
