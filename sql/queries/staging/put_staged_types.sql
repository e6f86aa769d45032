-- name: put_staged_types
-- Enters the provider's words for types.
insert into staged_type (provider_type, entry_type)
select distinct on (lower(t.word))
    lower(t.word),
    t.meaning
from unnest(:words::text[], :meanings::text[]) as t (word, meaning)
order by lower(t.word), t.word;
