-- The cohort that decides for changes of one customer account at one provider account: the first in
-- the file's order whose newest version (stated before p_at) fits. No row: the provider account's
-- own mode counts.
create or replace function duebook.cohort_of(
    p_account_id text,
    p_provider_account text,
    p_at timestamptz default 'infinity'
)
returns table (cohort text, cohort_version integer, mode text)
language sql
stable
rows 1
set search_path = ''
as $$
    select c.cohort, c.cohort_version, c.mode
    from duebook.cohort as c
    where
        c.mode is not null
        and c.stated_at < p_at
        and not exists (
            select
            from duebook.cohort as n
            where
                n.cohort = c.cohort
                and n.cohort_version > c.cohort_version
                and n.stated_at < p_at
        )
        and (c.provider_accounts is null or p_provider_account = any(c.provider_accounts))
        and (
            c.account_count is null
            or exists (
                select
                from duebook.cohort_member as m
                where m.cohort_version = c.cohort_version and m.account_id = p_account_id
            )
        )
        and (
            c.percent is null
            or duebook.cohort_bucket(c.cohort, p_account_id) < c.percent * 100
        )
        and (
            c.attribute is null
            or exists (
                select
                from duebook.contact as t
                where
                    t.account_id = p_account_id
                    and case c.attribute
                        when 'region' then t.region
                        when 'locale' then t.locale
                        else t.zone
                    end = any(c.attribute_values)
            )
        )
    order by c.place, c.cohort
    limit 1;
$$;
comment on function duebook.cohort_of(text, text, timestamptz) is
'The cohort that decides for changes of an account at a provider account; no row: the provider account''s own mode.';
