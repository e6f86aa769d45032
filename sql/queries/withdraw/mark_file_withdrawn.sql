-- name: mark_file_withdrawn
-- The file counts no more; who withdrew it and why is kept, here and as an audit event.
with marked as (
    update duebook.settlement_file as f
    set
        withdrawn_at = clock_timestamp(),
        withdrawn_by = :by::text,
        withdrawn_because = :reason::text,
        withdrawn_run_id = :run_id
    where f.file_id = :file_id::bigint and f.withdrawn_at is null
    returning f.file_id, f.name, f.sha256, f.provider_account
)

insert into duebook.audit_event (actor, action, subject, detail)
select
    :by::text,
    'withdraw_file',
    m.provider_account,
    jsonb_build_object(
        'file_id', m.file_id, 'name', m.name, 'sha256', m.sha256, 'reason', :reason::text
    )
from marked as m;
