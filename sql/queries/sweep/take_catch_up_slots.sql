-- name: take_catch_up_slots
-- When each of the missed intents that may be sent is let go; null: no slot is left in time.
select
    duebook.take_catch_up_slots(
        :paces::text[], :rates::integer[], :limits::timestamptz[], :now::timestamptz
    ) as slots;
