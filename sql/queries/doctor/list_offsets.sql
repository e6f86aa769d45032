-- name: list_offsets
-- PostgreSQL's offsets of a zone at some instants, in seconds east of UTC.
select
    i.instant,
    extract(
        epoch from (i.instant at time zone :zone) - (i.instant at time zone 'UTC')
    )::integer as offset_seconds
from unnest(:instants::timestamptz[]) as i (instant)
order by i.instant;
