-- What a hold is at an instant: by the clock, whether or not a sweep has come by.
create or replace function duebook.hold_state(p_hold duebook.hold, p_at timestamptz)
returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select
        case
            when p_hold.reheld_at is not null then 'reheld'
            when p_hold.confirmed_at is not null then 'confirmed'
            when p_hold.refunded_at is not null then 'refunded'
            when p_hold.cancelled_at is not null then 'cancelled'
            when p_hold.expired_at is not null or p_hold.expires_at <= p_at then 'expired'
            else 'open'
        end;
$$;
comment on function duebook.hold_state(duebook.hold, timestamptz) is
'What a hold is at an instant: open, expired, confirmed, reheld, refunded or cancelled.';
