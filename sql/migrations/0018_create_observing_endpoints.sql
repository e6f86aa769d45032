-- An old sender may tell each of its sends by a webhook of its own.

alter table duebook.old_sender
add column endpoint text;
comment on column duebook.old_sender.endpoint is
'Webhook endpoint whose events are its sends; null: it tells none that way.';
