-- name: copy_booked_rows
-- The generated ledger CSV, as it is.
copy booked_row from stdin (format csv, header true);
