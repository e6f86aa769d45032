-- name: read_seen_horizon
-- From which transaction on imports were not surely seen. A horizon from another cluster (a
-- restored dump counts transactions anew) means: look at everything.
select
    case
        when a.seen_xid is null or a.seen_xid > pg_snapshot_xmax(pg_current_snapshot()) then '0'
        else a.seen_xid::text
    end as seen_xid
from duebook.provider_account as a
where a.provider_account = :provider_account;
