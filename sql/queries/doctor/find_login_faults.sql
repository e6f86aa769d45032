-- name: find_login_faults
-- What the login of this connection would need and has not.
select format('%s may not %s duebook.%s', current_user, w.privilege, w.relname) as fault
from (
    values
    ('due', 'delete'),
    ('outcome', 'insert'),
    ('settlement_entry', 'insert'),
    ('audit_event', 'insert')
) as w (relname, privilege)
where not has_table_privilege('duebook.' || w.relname, w.privilege);
