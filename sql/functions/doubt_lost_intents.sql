-- Puts intents of a run in doubt that a run lost by a restore may have promised, and a sender sent:
-- those whose evidence occurred so early that they could have been due when the restore was
-- accepted. Only for provider accounts that lost a run, until their first full run since then has
-- committed. Called in the run's own transaction; returns how many.
create or replace function duebook.doubt_lost_intents(p_run_id bigint, p_provider_account text)
returns integer
language plpgsql
set search_path = ''
as $$
declare
    v_restore duebook.restore_accepted;
    v_doubtful integer;
begin
    select r.* into v_restore
    from duebook.restore_accepted as r
    where
        p_provider_account = any(r.lost_provider_accounts)
        and not exists (
            select
            from duebook.reconciliation_run as n
            where
                n.provider_account = p_provider_account
                and n.scope = 'full'
                and n.started_at > r.accepted_at
                and n.run_id <> p_run_id
        )
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
    from duebook.intent as i
    inner join duebook.ledger_change as c
        on i.account_id = c.account_id and i.change_id = c.change_id
    where
        i.run_id = p_run_id
        and i.ownership = 'live'
        and i.channel <> 'internal'
        and c.evidence_at + (i.notify_at - i.created_at) <= v_restore.accepted_at;
    return v_doubtful;
end;
$$;
comment on function duebook.doubt_lost_intents(bigint, text) is
'Puts intents of a run in doubt that a run lost by a restore may have promised and sent. Returns how many.';
