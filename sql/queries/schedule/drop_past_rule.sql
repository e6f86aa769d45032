-- name: drop_past_rule
-- Every date of an edited rule is written.
delete from duebook.schedule_past as p
where
    p.account_id = :account_id
    and p.schedule = :schedule
    and p.rule_version = :rule_version;
