-- name: move_past_rule
-- How far the dates of an edited rule are written.
update duebook.schedule_past as p
set rule = p.rule || jsonb_build_object('next_on', :next_on::date)
where
    p.account_id = :account_id
    and p.schedule = :schedule
    and p.rule_version = :rule_version;
