-- name: put_staged_source
-- Enters one file, or the API as source 0.
insert into staged_source (source_no, name, sha256, size_bytes)
values (:source_no, :name, :sha256, :size_bytes);
