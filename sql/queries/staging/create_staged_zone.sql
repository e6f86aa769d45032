-- name: create_staged_zone
-- Time zones as files write them. An abbreviation means the zone of its region, whatever the season
-- ("PST" in July); its offset only tells the two readings of a repeated hour apart.
create temporary table staged_zone (
    abbreviation text primary key,
    zone text not null,
    utc_offset interval
);
