-- The instant up to which a budget's tokens are counted at p_at: the rest of a token stays its own.
create or replace function duebook.counted_until(p_budget duebook.budget, p_at timestamptz)
returns timestamptz
language sql
stable
set search_path = ''
as $$
    select
        case
            when p_at <= p_budget.refilled_at then p_at
            when
                p_budget.refill_per_minute = 0
                or p_budget.tokens + duebook.whole_tokens(p_budget, p_at) >= p_budget.capacity
                then p_at
            else
                p_budget.refilled_at
                + interval '1 minute'
                * (duebook.whole_tokens(p_budget, p_at)::double precision
                    / p_budget.refill_per_minute)
        end;
$$;
comment on function duebook.counted_until(duebook.budget, timestamptz) is
'The instant up to which the tokens of a budget are counted: the rest of a token is kept.';
