-- Who may do what. Applied by every migrate, so that objects made anew get their rights again.
revoke all on schema duebook from public;
revoke all on schema duebook_reports from public;
revoke all on all routines in schema duebook from public;
revoke all on all routines in schema duebook_reports from public;

-- The application.
grant usage on schema duebook, duebook_reports to duebook_app;
grant select, insert, update, delete on all tables in schema duebook to duebook_app;
grant select on all tables in schema duebook_reports to duebook_app;
grant usage on all sequences in schema duebook to duebook_app;
grant execute on all routines in schema duebook, duebook_reports to duebook_app;

-- What is append-only is so for the application too; retention is the owner's.
revoke update, delete on
duebook.attempt,
duebook.attempt_result,
duebook.audit_event,
duebook.batch_ended,
duebook.cohort,
duebook.cohort_member,
duebook.delivery_report,
duebook.digest,
duebook.digest_member,
duebook.discrepancy_event,
duebook.event_effect,
duebook.fail_over,
duebook.incident_intent,
duebook.intent_change,
duebook.intent_request,
duebook.ledger_change,
duebook.observed_send,
duebook.outcome,
duebook.ownership_change,
duebook.restore_accepted,
duebook.settlement_entry_version,
duebook.settlement_file_check,
duebook.webhook_body,
duebook.webhook_receipt
from duebook_app;
revoke insert, update, delete on
duebook.alembic_version,
duebook.applied_object,
duebook.currency_exponent
from duebook_app;

-- The public edge: may hand in a receipt or a recipient's wish to be left alone, and see nothing.
grant usage on schema duebook to duebook_receiver;

-- An old sender: may ask for a key and say what it sent, and see nothing.
grant usage on schema duebook to duebook_old_sender;

-- Analysts: the reports, and of the functions only those that a report calls (PostgreSQL checks
-- these against whoever reads the view). Without usage on schema duebook they can't call them.
grant usage on schema duebook_reports to duebook_analyst;
grant select on all tables in schema duebook_reports to duebook_analyst;

do $$
declare
    v_statement text;
begin
    for v_statement in
        select distinct
            format('grant execute on function %s to duebook_analyst', d.refobjid::regprocedure)
        from pg_catalog.pg_depend as d
        inner join pg_catalog.pg_rewrite as r on d.objid = r.oid
        inner join pg_catalog.pg_class as c on r.ev_class = c.oid
        inner join pg_catalog.pg_proc as p on d.refobjid = p.oid
        where
            d.classid = 'pg_catalog.pg_rewrite'::regclass
            and d.refclassid = 'pg_catalog.pg_proc'::regclass
            and c.relnamespace = 'duebook_reports'::regnamespace
            and p.pronamespace in ('duebook'::regnamespace, 'duebook_reports'::regnamespace)
        union all
        select format('grant execute on function %s to duebook_receiver', p.oid::regprocedure)
        from pg_catalog.pg_proc as p
        where
            p.pronamespace = 'duebook'::regnamespace
            and p.proname in ('record_receipt', 'unsubscribe')
        union all
        select format('grant execute on function %s to duebook_old_sender', p.oid::regprocedure)
        from pg_catalog.pg_proc as p
        where
            p.pronamespace = 'duebook'::regnamespace
            and p.proname in ('ask_to_send', 'record_observed_send')
    loop
        execute v_statement;
    end loop;
end;
$$;

-- Alembic makes its table without a word.
comment on table duebook.alembic_version is 'The newest migration that this database was given.';
comment on column duebook.alembic_version.version_num is 'Number of that migration.';
