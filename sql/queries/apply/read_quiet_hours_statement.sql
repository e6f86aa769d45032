-- name: read_quiet_hours_statement
-- Whether quiet hours were stated, how many windows there are, and who is live without them.
select
    exists(select from duebook.quiet_hours_statement) as is_stated,
    (select count(*) from duebook.quiet_hours) as window_count,
    array(
        select a.provider_account
        from duebook.provider_account as a
        where a.mode = 'live'
        order by a.provider_account
    ) as live_accounts;
