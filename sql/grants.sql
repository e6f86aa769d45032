-- Who may do what. Applied after every migrate, so that objects made anew get their rights again.
revoke all on schema duebook from public;
revoke all on schema duebook_reports from public;
revoke all on all functions in schema duebook from public;
revoke all on all functions in schema duebook_reports from public;

grant usage on schema duebook, duebook_reports to duebook_app;
grant select, insert, update, delete on all tables in schema duebook to duebook_app;
grant select on all tables in schema duebook_reports to duebook_app;
grant usage on all sequences in schema duebook to duebook_app;
grant execute on all routines in schema duebook to duebook_app;
grant execute on all routines in schema duebook_reports to duebook_app;

grant usage on schema duebook to duebook_receiver;

grant usage on schema duebook_reports to duebook_analyst;
grant select on all tables in schema duebook_reports to duebook_analyst;
