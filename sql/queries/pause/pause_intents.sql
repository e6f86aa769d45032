-- name: pause_intents
-- Pauses intents, for the command line.
select
    duebook.pause_intents(
        :scope::text, :name::text, :mode::text, :reason::text, :by::text
    ) as done;
