-- The open incident that pauses the sweeps, until it is resumed; null: nothing pauses them.
create or replace function duebook.sweep_paused_by() returns text
language sql
stable
set search_path = ''
as $$
    select i.name
    from duebook.incident as i
    where i.closed_at is null and i.pauses_sweep and i.resumed_at is null;
$$;
comment on function duebook.sweep_paused_by() is
'Name of the open incident that pauses the sweeps, until it is resumed; null when none does.';
