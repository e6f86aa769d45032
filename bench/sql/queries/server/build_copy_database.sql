-- name: build_copy_database
-- The statement that copies a database file by file: each contender starts from the same one.
select format('create database %I template %I strategy file_copy', :name::text, :template::text);
