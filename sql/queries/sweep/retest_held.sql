-- name: retest_held
-- One bounded pass over held intents.
select
    r.back_in_due,
    r.expired,
    r.tested
from duebook.retest_held(:most::integer, :environment::text) as r;
