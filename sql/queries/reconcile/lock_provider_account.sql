-- name: lock_provider_account
-- Makes the runs of one provider account serial, and reads what decides about them.
select
    a.provider,
    a.mode,
    a.notify_from,
    a.settle_within,
    a.zone,
    a.look_back,
    a.settings,
    a.last_full_as_of,
    a.books_until,
    a.judged_books_until
from duebook.provider_account as a
where a.provider_account = :provider_account
for update;
