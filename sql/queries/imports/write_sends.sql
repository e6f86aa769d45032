-- name: write_sends
-- Writes the sends that are not known yet. A fact is never changed: one that is known by its id
-- stays as it was told first.
with written as (
    insert into duebook.observed_send (
        sender, source, external_id, account_id, operation_key, kind, channel, payment_id, sent_at
    )
    select
        :sender,
        :source,
        s.external_id,
        s.account_id,
        s.operation_key,
        s.kind,
        nullif(s.channel, ''),
        s.payment_id,
        s.sent_at
    from staged_send as s
    order by s.external_id
    on conflict (sender, external_id) do nothing
    returning observed_send_id
)

select
    (select count(*) from staged_send) as told,
    count(*) as added,
    0::bigint as changed
from written;
