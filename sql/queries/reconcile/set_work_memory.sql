-- name: set_work_memory
-- Room for the hash tables of a large diff, in this transaction only.
set local work_mem = '192MB';
