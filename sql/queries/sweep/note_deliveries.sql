-- name: note_deliveries
-- Where the sends of a window failed and where they did not, for a channel that gives up in time.
select
    duebook.note_deliveries(
        :channel::text, :failed::text[], :reached::text[], :give_up_after::interval
    ) as given_up;
