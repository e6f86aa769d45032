-- name: put_staged_statuses
-- Enters the provider's words for statuses.
insert into staged_status (provider_status, entry_status)
select distinct on (lower(t.word))
    lower(t.word),
    t.meaning
from unnest(:words::text[], :meanings::text[]) as t (word, meaning)
order by lower(t.word), t.word;
