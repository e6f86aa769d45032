-- The promise that a new hold expires: intent, due row and who created it.
-- Its limit is far away, since no hold may be left without its end.
create or replace function duebook.promise_hold_expiry(
    p_hold duebook.hold,
    p_key text,
    p_by text
) returns void
language sql
set search_path = ''
as $$
    with promised as (
        insert into duebook.intent (
            account_id, operation_key, kind, subject, payment_id, channel, notify_at, give_up_at,
            ownership
        )
        values (
            p_hold.account_id, p_key, 'hold_expiry', 'hold:' || p_hold.hold, p_hold.payment_id,
            'internal', p_hold.expires_at, p_hold.expires_at + interval '100 years', 'live'
        )
        returning account_id, intent_id, notify_at, kind, channel, give_up_at
    ),
    scheduled as (
        insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
        select p.account_id, p.intent_id, p.notify_at, p.kind, p.channel, p.give_up_at
        from promised as p
    )
    insert into duebook.audit_event (actor, action, account_id, subject, detail)
    values (
        p_by, 'create_hold', p_hold.account_id, p_key,
        pg_catalog.jsonb_strip_nulls(
            pg_catalog.jsonb_build_object(
                'resource', p_hold.resource, 'quantity', p_hold.quantity
            )
        )
    );
$$;
comment on function duebook.promise_hold_expiry(duebook.hold, text, text) is
'The promise that a new hold expires: its intent, its due row, and who created it.';
