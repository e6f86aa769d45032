-- name: count_effects
-- What a drill's events came to: receipts, bodies and effects.
select
    (select count(*) from duebook.webhook_receipt) as receipts,
    (select count(*) from duebook.event_effect as e where e.effect = 'read') as effects,
    (select count(*) from duebook.pending_event) as pending;
