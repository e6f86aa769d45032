-- Whole tokens that flowed into a budget since it was last counted. A clock set back adds none.
create or replace function duebook.whole_tokens(p_budget duebook.budget, p_at timestamptz)
returns bigint
language sql
stable
set search_path = ''
as $$
    select
        least(
            p_budget.capacity::numeric,
            greatest(
                0,
                pg_catalog.floor(
                    extract(epoch from p_at - p_budget.refilled_at)
                    * p_budget.refill_per_minute / 60
                )
            )
        )::bigint;
$$;
comment on function duebook.whole_tokens(duebook.budget, timestamptz) is
'Whole tokens that flowed into a budget since it was last counted, at most its capacity.';
