-- Holds what waits of a schedule whose rule was just edited, so that no sender claims it at its old
-- time: the calendar's pass computes it again and lets it go. What a sender has stays with it.
create or replace function duebook.hold_edited(
    p_account_id text,
    p_schedule text,
    p_edited_at timestamptz
) returns void
language sql
set search_path = ''
as $$
    with waiting as materialized (
        select d.*
        from duebook.occurrence as c
        inner join duebook.due as d on c.account_id = d.account_id and c.intent_id = d.intent_id
        where
            c.account_id = p_account_id
            and c.schedule = p_schedule
            and c.due_at > p_edited_at
        order by d.account_id, d.intent_id
        for update of d
    ),
    gone as (
        delete from duebook.due as d
        using waiting as w
        where d.account_id = w.account_id and d.intent_id = w.intent_id
    )
    insert into duebook.held (
        account_id, intent_id, cause, due_at, kind, channel, give_up_at, tries, claims,
        suspicions, safe_retry_until, retest_at
    )
    select
        w.account_id, w.intent_id, 'rule_edited', w.due_at, w.kind, w.channel, w.give_up_at,
        w.tries, w.claims, w.suspicions, w.safe_retry_until, w.give_up_at
    from waiting as w;
$$;
comment on function duebook.hold_edited(text, text, timestamptz) is
'Holds what waits of a schedule whose rule was just edited, until it is computed again.';
