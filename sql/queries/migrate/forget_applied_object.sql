-- name: forget_applied_object
-- The file is gone, and its object was dropped.
delete from duebook.applied_object
where path = :path;
