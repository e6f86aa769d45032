-- name: set_temp_buffers
-- Room for the temporary tables of a large file; before the first of them is touched.
set temp_buffers = '128MB';
