-- name: list_applied_kinds
-- Kinds of notice the database knows.
select k.kind
from duebook.intent_kind as k;
