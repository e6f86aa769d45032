-- name: list_story_kinds
-- Which kinds are told, and how long after.
select
    k.kind,
    k.enabled as is_enabled,
    k.channel,
    k.notify_after
from duebook.intent_kind as k;
