-- name: record_secret_shown
-- Who was shown the signing secret of an account's endpoint; the secret itself is stored nowhere.
insert into duebook.audit_event (actor, action, account_id, subject, detail)
values (
    :actor::text,
    'show_channel_secret',
    :account_id::text,
    'channel:' || :channel::text,
    '{}'
);
