-- Puts occurrences that were written since a restore was accepted in doubt when they were due
-- before: they may have been written, and sent, in what the restore took back. Called in the
-- transaction that writes them; returns how many.
create or replace function duebook.doubt_lost_occurrences(
    p_account_ids text[],
    p_schedules text[],
    p_nominal_ons date[]
) returns integer
language plpgsql
set search_path = ''
as $$
declare
    v_restore duebook.restore_accepted;
    v_doubtful integer;
begin
    select r.* into v_restore
    from duebook.restore_accepted as r
    order by r.restore_id desc
    limit 1;
    if not found then
        return 0;
    end if;

    select
        duebook.put_restored_in_doubt(
            pg_catalog.array_agg(i.account_id), pg_catalog.array_agg(i.intent_id),
            v_restore.batch_id, v_restore.accepted_at
        )
    into v_doubtful
    from unnest(p_account_ids, p_schedules, p_nominal_ons) as g (account_id, schedule, nominal_on)
    inner join duebook.occurrence as c
        on
            g.account_id = c.account_id
            and g.schedule = c.schedule
            and g.nominal_on = c.nominal_on
    inner join duebook.intent as i on c.account_id = i.account_id and c.intent_id = i.intent_id
    where
        i.notify_at <= v_restore.accepted_at
        and i.created_at > v_restore.accepted_at
        and i.channel <> 'internal';
    return v_doubtful;
end;
$$;
comment on function duebook.doubt_lost_occurrences(text[], text[], date[]) is
'Puts just written occurrences that were due before a restore was accepted in doubt. Returns how many.';
