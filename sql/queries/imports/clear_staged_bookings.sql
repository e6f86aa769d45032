-- name: clear_staged_bookings
-- Before the rows are laid down again, examined.
truncate staged_booking;
