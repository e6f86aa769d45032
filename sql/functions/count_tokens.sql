-- Tokens a budget has at p_at: what it had plus the whole tokens since, at most its capacity.
create or replace function duebook.count_tokens(p_budget duebook.budget, p_at timestamptz)
returns integer
language sql
stable
set search_path = ''
as $$
    select
        least(
            p_budget.capacity::bigint,
            p_budget.tokens + duebook.whole_tokens(p_budget, p_at)
        )::integer;
$$;
comment on function duebook.count_tokens(duebook.budget, timestamptz) is
'Tokens a budget has at an instant: what it had plus the whole tokens since, at most its capacity.';
