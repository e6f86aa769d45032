-- Keeps each decision about consent, also those that no longer count.
create or replace function duebook.audit_consent(
    p_account_id text,
    p_kind text,
    p_channel text,
    p_granted boolean,
    p_source text,
    p_decided_at timestamptz,
    p_counts boolean
) returns void
language sql
set search_path = ''
as $$
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_source,
        'consent',
        p_account_id,
        p_kind || ':' || p_channel,
        pg_catalog.jsonb_build_object(
            'granted', p_granted, 'decided_at', p_decided_at, 'counts', p_counts
        )
    );
$$;
comment on function duebook.audit_consent(
    text, text, text, boolean, text, timestamptz, boolean
) is 'Keeps each decision about consent, also those that no longer count.';
