-- name: duckdb_count_matched
-- For DuckDB: how many of tonight's rows agree with the books.
select count(*) as matched
from told as f
inner join books as b on f.payment_ref = b.payment_ref
where f.gross_minor = b.amount_minor and f.currency = b.booked_currency;
