-- name: set_work_memory
-- Room for the hash tables of a large diff, in this session.
set work_mem = '192MB';
