-- How far the books are complete, which is another instant than how far a provider's evidence is.

alter table duebook.provider_account
add column books_until timestamptz,
add column judged_books_until timestamptz;
comment on column duebook.provider_account.books_until is
'Until when the books that were imported are complete; an entry that occurred from then on is not missing in them yet. null: no cut-off is known.';
comment on column duebook.provider_account.judged_books_until is 'That instant at the last full run: entries since then are looked up again.';
