-- A budget hands out slots in time, so that any number of senders keep its rate in every second;
-- and after a pause one message is tried before the others.

alter table duebook.budget
add column slot_spacing interval,
add column next_slot_at timestamptz,
add column probe_batch_id bigint;
comment on column duebook.budget.slot_spacing is
'Least time between the starts of two messages, whoever sends them; null: tokens may be used at once.';
comment on column duebook.budget.next_slot_at is 'First instant that no claim has taken yet.';
comment on column duebook.budget.probe_batch_id is
'The one batch that may send after a pause, to see whether the channel accepts again; null: none.';

alter table duebook.batch
add column slot_from timestamptz,
add column slot_spacing interval;
comment on column duebook.batch.slot_from is
'When its first message may start, the others each slot_spacing later; null: at once.';
comment on column duebook.batch.slot_spacing is 'The spacing of its budget when it was claimed.';
