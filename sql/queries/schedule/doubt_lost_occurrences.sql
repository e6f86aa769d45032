-- name: doubt_lost_occurrences
-- What a restore may have taken back of the calendar is in doubt and not due.
select
    duebook.doubt_lost_occurrences(
        :account_ids::text[], :schedules::text[], :nominal_ons::date[]
    ) as doubtful;
