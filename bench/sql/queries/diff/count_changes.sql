-- name: count_changes
-- What must hold after a diff: each changed row is current in its second version, promised once.
select
    (select count(*) from duebook.settlement_entry where version = 1) as unchanged,
    (select count(*) from duebook.settlement_entry where version = 2) as changed,
    (select count(*) from duebook.intent) as intents,
    (select count(*) from duebook.due) as due,
    (select sum(net_minor)::bigint from duebook.settlement_entry) as net_minor;
