-- name: write_catch_up_decisions
-- What the catch-up policy, as it was at that moment, said about each missed intent of a window.
insert into duebook.audit_event (actor, action, account_id, subject, detail)
select
    'gate',
    'catch_up',
    d.account_id,
    d.operation_key,
    d.detail
from
    jsonb_to_recordset(:decisions::jsonb)
        as d (account_id text, operation_key text, detail jsonb);
