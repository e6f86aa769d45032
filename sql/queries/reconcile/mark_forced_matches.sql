-- name: mark_forced_matches
-- Matches by hand that this run applied.
update duebook.forced_match as f
set applied_run_id = :run_id
where
    f.provider_account = :provider_account
    and f.applied_run_id is null
    and exists (select from claim as c where c.entry_id = f.entry_id);
