-- Every hold and what it is at this moment: by the clock, whether or not a sweep has come by.
create or replace view duebook_reports.holds as
select
    h.account_id,
    h.hold,
    h.resource,
    h.quantity,
    h.payment_id,
    duebook.hold_state(h, c.now) as state,
    h.created_at,
    h.expires_at,
    h.confirmed_at,
    h.cancelled_at,
    h.expired_at,
    h.reheld_at,
    h.refunded_at,
    duebook.hold_state(h, c.now) in ('open', 'confirmed', 'reheld') as is_taken,
    extract(epoch from h.expired_at - h.expires_at)::numeric(20, 3) as swept_after_s,
    duebook.hold_expiry_key(h.hold, h.expires_at) as operation_key
from duebook.hold as h
cross join (select clock_timestamp() as now) as c;
comment on view duebook_reports.holds is
'Every reservation and what it is now, by the clock. One row per hold.';
comment on column duebook_reports.holds.account_id is 'Customer account.';
comment on column duebook_reports.holds.hold is 'Name of the hold, unique for the account.';
comment on column duebook_reports.holds.resource is 'What it reserves, if something that is counted.';
comment on column duebook_reports.holds.quantity is 'How much of it.';
comment on column duebook_reports.holds.payment_id is 'Payment that is to confirm it, or did.';
comment on column duebook_reports.holds.state is
'open, expired, confirmed, reheld (a payment after its end got it again), refunded (it could not) or cancelled.';
comment on column duebook_reports.holds.created_at is 'When it was created.';
comment on column duebook_reports.holds.expires_at is 'From here on it is expired, unless it was confirmed before.';
comment on column duebook_reports.holds.confirmed_at is 'When it was confirmed or re-held.';
comment on column duebook_reports.holds.cancelled_at is 'When it was cancelled.';
comment on column duebook_reports.holds.expired_at is 'When a sweep recorded its expiry.';
comment on column duebook_reports.holds.reheld_at is 'When a payment after its end got it again.';
comment on column duebook_reports.holds.refunded_at is 'When a payment after its end was to be refunded.';
comment on column duebook_reports.holds.is_taken is 'Whether it takes from its resource now.';
comment on column duebook_reports.holds.swept_after_s is 'Seconds from its end until a sweep recorded it.';
comment on column duebook_reports.holds.operation_key is 'Operation key of its expiry.';
