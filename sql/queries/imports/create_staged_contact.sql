-- name: create_staged_contact
-- Contacts of one file before they are compared with those that are known.
create temporary table staged_contact (
    line_no bigint not null,
    account_id text,
    channel text,
    address text,
    zone text,
    locale text,
    region text
);
