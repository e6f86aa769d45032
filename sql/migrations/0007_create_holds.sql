-- Reservations with a fixed end. Whether one is expired says expires_at, never a sweep.

create table duebook.hold_resource (
    resource text primary key,
    capacity integer,
    confirmed bigint not null default 0,
    changes bigint not null default 0,
    updated_at timestamptz not null default clock_timestamp(),
    constraint resource_is_valid check (char_length(resource) between 1 and 200),
    constraint capacity_is_not_negative check (capacity >= 0),
    constraint confirmed_is_not_negative check (confirmed >= 0)
) with (fillfactor = 50);
comment on table duebook.hold_resource is
'What holds reserve and how much of it there is. Whoever creates or confirms a hold of it holds this row.';
comment on column duebook.hold_resource.resource is 'Name of the resource.';
comment on column duebook.hold_resource.capacity is 'How much of it can be reserved and confirmed together; null: no limit.';
comment on column duebook.hold_resource.confirmed is 'Quantity of its confirmed holds. What is still open is counted by the clock instead.';
comment on column duebook.hold_resource.changes is 'Counts the transactions that held it: one that waited sees in every isolation level that it did.';
comment on column duebook.hold_resource.updated_at is 'When its capacity was last set.';

create table duebook.hold (
    account_id text not null,
    hold text not null,
    resource text,
    quantity integer not null default 1,
    payment_id text,
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    held_for interval,
    confirmed_at timestamptz,
    cancelled_at timestamptz,
    expired_at timestamptz,
    reheld_at timestamptz,
    refunded_at timestamptz,
    primary key (account_id, hold),
    constraint hold_is_valid check (char_length(hold) between 1 and 200),
    constraint quantity_is_positive check (quantity > 0),
    constraint expiry_is_after_creation check (expires_at > created_at),
    constraint hold_ends_once check (num_nonnulls(confirmed_at, cancelled_at) < 2),
    constraint reheld_is_confirmed check (reheld_at is null or confirmed_at is not null),
    constraint late_payment_has_one_end check (num_nonnulls(confirmed_at, refunded_at) < 2),
    constraint late_payment_is_named
    check (num_nonnulls(reheld_at, refunded_at) = 0 or payment_id is not null)
);
create index hold_by_payment on duebook.hold (account_id, payment_id) where payment_id is not null;
-- A person asks for a hold by its name alone; which account it is of, is the question.
create index hold_by_name on duebook.hold (hold);
create index hold_open_by_resource on duebook.hold (resource, expires_at) include (quantity)
where confirmed_at is null and cancelled_at is null and expired_at is null;
comment on table duebook.hold is 'A reservation whose end was fixed when it was created.';
comment on column duebook.hold.account_id is 'Customer account.';
comment on column duebook.hold.hold is 'Name of the hold, unique for the account; stands in its operation key.';
comment on column duebook.hold.resource is 'What it reserves; null: nothing that is counted.';
comment on column duebook.hold.quantity is 'How much of it.';
comment on column duebook.hold.payment_id is 'Payment that is to confirm it, or did.';
comment on column duebook.hold.created_at is 'When it was created.';
comment on column duebook.hold.expires_at is 'From here on it is expired to every reader, swept or not, unless it was confirmed before.';
comment on column duebook.hold.held_for is 'How long it was asked to hold, where no instant was: what a repeated creation is compared with.';
comment on column duebook.hold.confirmed_at is 'When it was confirmed, while it could be, or re-held.';
comment on column duebook.hold.cancelled_at is 'When it was cancelled.';
comment on column duebook.hold.expired_at is 'When a sweep recorded its expiry.';
comment on column duebook.hold.reheld_at is 'When a payment after its expiry got it again, since it still could.';
comment on column duebook.hold.refunded_at is 'When a payment after its expiry was to be refunded, since it could not be held again.';
