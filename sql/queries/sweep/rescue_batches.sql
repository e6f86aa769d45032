-- name: rescue_batches
-- The transaction before the claims: batches whose lease has lapsed, at most so many.
select
    r.batch_id,
    r.how,
    r.back_in_due,
    r.in_doubt,
    r.held
from duebook.rescue_batches(:most::integer, :window_size::integer) as r;
