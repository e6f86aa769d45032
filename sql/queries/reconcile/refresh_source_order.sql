-- name: refresh_source_order
-- An API that tells an entry unchanged has confirmed it: what was read before that is older now.
update duebook.settlement_entry as e
set source_order = s.source_order
from staged_entry as s
where
    s.source_no = 0
    and e.provider_account = :provider_account
    and e.entry_id = s.entry_id
    and e.source_order < s.source_order;
