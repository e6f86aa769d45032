-- name: vacuum_everything
-- Statistics and visibility as autovacuum leaves them, before the clock starts.
vacuum (analyze);
