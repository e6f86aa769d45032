-- name: set_books_until
-- States until when the books are complete, for the named provider accounts or all; it never goes
-- back. Returns those that are known.
update duebook.provider_account as a
set books_until = greatest(a.books_until, :books_until::timestamptz)
where :provider_accounts::text[] is null or a.provider_account = any(:provider_accounts::text[])
returning a.provider_account;
