-- Records a decision of an account about a kind of notice (or * for all) on a channel (or *), in
-- the caller's transaction. The newest decision counts; an older one that arrives late is kept in
-- the audit trail alone. The same again does nothing; another decision of the same source for the
-- same instant is refused. Returns recorded, older or known.
create or replace function duebook.set_consent(
    p_account_id text,
    p_kind text,
    p_channel text,
    p_granted boolean,
    p_source text,
    p_decided_at timestamptz default null
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_decided_at timestamptz := coalesce(p_decided_at, pg_catalog.clock_timestamp());
    v_known duebook.consent;
begin
    if
        p_account_id is null or p_kind is null or p_channel is null or p_granted is null
        or pg_catalog.btrim(coalesce(p_source, '')) = ''
    then
        raise exception 'a consent names account, kind, channel, decision and source'
            using errcode = 'invalid_parameter_value';
    end if;
    -- Somebody who decides from a clock that is ahead must not outrank later decisions for long.
    if v_decided_at > pg_catalog.clock_timestamp() + interval '5 minutes' then
        raise exception 'a decision of % is in the future', v_decided_at
            using errcode = 'invalid_parameter_value', column = 'decided_at';
    end if;

    insert into duebook.consent as c (account_id, kind, channel, granted, source, decided_at)
    values (p_account_id, p_kind, p_channel, p_granted, p_source, v_decided_at)
    on conflict (account_id, kind, channel) do nothing;
    if not found then
        select c.* into strict v_known
        from duebook.consent as c
        where c.account_id = p_account_id and c.kind = p_kind and c.channel = p_channel
        for update;
        if
            (v_known.granted, v_known.source, v_known.decided_at)
            is not distinct from (p_granted, p_source, v_decided_at)
        then
            return 'known';
        end if;
        if v_known.decided_at = v_decided_at and v_known.source = p_source then
            raise exception 'the decision of % for % was recorded otherwise',
                p_source, v_decided_at
                using errcode = 'unique_violation', column = 'granted';
        end if;
        -- Of two at once the refusal counts.
        if
            v_known.decided_at > v_decided_at
            or (v_known.decided_at = v_decided_at and not v_known.granted)
        then
            perform duebook.audit_consent(
                p_account_id, p_kind, p_channel, p_granted, p_source, v_decided_at, false
            );
            return 'older';
        end if;
        update duebook.consent as c
        set granted = p_granted, source = p_source, decided_at = v_decided_at
        where c.account_id = p_account_id and c.kind = p_kind and c.channel = p_channel;
    end if;
    perform duebook.audit_consent(
        p_account_id, p_kind, p_channel, p_granted, p_source, v_decided_at, true
    );
    return 'recorded';
end;
$$;
comment on function duebook.set_consent(text, text, text, boolean, text, timestamptz) is
'Records a decision of an account about a kind of notice on a channel. Returns recorded, older or known.';
