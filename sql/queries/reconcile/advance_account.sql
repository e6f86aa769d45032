-- name: advance_account
-- Moves the order of full runs and the cursor; a scoped run moves neither.
update duebook.provider_account as a
set
    last_full_as_of = greatest(a.last_full_as_of, :as_of::timestamptz),
    last_full_run_id = :run_id,
    seen_xid = :seen_xid::xid8,
    newest_entry_at = greatest(
        a.newest_entry_at,
        (select max(n.occurred_at) from applied_entry as n where n.change <> 'stale')
    ),
    judged_books_until = :books_until::timestamptz,
    cursor_position = greatest(a.cursor_position, :cursor_position::timestamptz)
where a.provider_account = :provider_account;
