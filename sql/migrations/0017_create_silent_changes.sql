-- A change that is told to nobody says so itself, so that its intents can be derived from it again.

alter table duebook.ledger_change
add column is_silent boolean not null default false;
comment on column duebook.ledger_change.is_silent is
'True: told to nobody, whatever kinds are enabled (a withdrawal, evidence that moved from a payment that was told).';
