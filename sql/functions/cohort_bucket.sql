-- The place of an account in a cohort by share: 0 to 9999, the first 32 bits of the MD5 of
-- `<cohort>:<account>` modulo 10000, so that any system can count it. A share of n percent is every
-- bucket below n * 100: raising it keeps everybody who was in.
create or replace function duebook.cohort_bucket(p_cohort text, p_account_id text)
returns integer
language sql
immutable
parallel safe
set search_path = ''
as $$
    select ((
        'x' || pg_catalog.substr(
            pg_catalog.md5(p_cohort || ':' || p_account_id), 1, 8
        )
    )::bit(32)::bigint & 4294967295) % 10000;
$$;
comment on function duebook.cohort_bucket(text, text) is
'Bucket 0 to 9999 of an account in a cohort by share: first 32 bits of md5(cohort:account) modulo 10000.';
