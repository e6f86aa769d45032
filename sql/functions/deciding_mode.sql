-- Whose a change is: the cohort's mode where one fits, else the provider account's. One in dry_run
-- lets nothing go out, whatever a cohort says, and nothing is live before it is said from when on.
create or replace function duebook.deciding_mode(
    p_mode text,
    p_cohort_mode text,
    p_notify_from timestamptz
) returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select case
        when p_mode = 'dry_run' then 'dry_run'
        when coalesce(p_cohort_mode, p_mode) = 'live' and p_notify_from is null then 'shadow'
        else coalesce(p_cohort_mode, p_mode)
    end;
$$;
comment on function duebook.deciding_mode(text, text, timestamptz) is
'Mode that decides whose a change is: the cohort''s, else the provider account''s; dry_run of the latter always wins.';
