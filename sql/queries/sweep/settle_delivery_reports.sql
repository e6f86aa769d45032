-- name: settle_delivery_reports
-- Addresses that a report said are dead before the outcome of its message was there.
select duebook.settle_delivery_reports() as suppressed;
