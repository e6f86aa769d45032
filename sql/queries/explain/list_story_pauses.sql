-- name: list_story_pauses
-- What is paused now, by whom, since when and why.
select
    p.scope,
    p.name,
    p.mode,
    p.reason,
    p.paused_by,
    p.paused_at
from duebook.pause as p;
