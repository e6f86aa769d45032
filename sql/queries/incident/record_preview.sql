-- name: record_preview
-- Inside a preview's transaction: what a resume would note, under an identity that no incident has.
select
    clock_timestamp() as as_of,
    duebook.record_incident_intents(0) as due;
