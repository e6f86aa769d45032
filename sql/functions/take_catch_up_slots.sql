-- When each of some missed intents may be sent, so that catching up keeps its rate however many
-- senders there are. Returns the slots in the order of the arrays; null where none is left before
-- p_limits, and such a one uses up none.
--
-- p_paces names the rate of each (its kind), p_rates is how many of it may go a minute. The slots
-- of a pace are one time line, from the later of p_now and its next free one. Part of the
-- transaction that opens a window: its lock is held until that commits; paces are locked in order.
create or replace function duebook.take_catch_up_slots(
    p_paces text[],
    p_rates integer[],
    p_limits timestamptz[],
    p_now timestamptz
) returns timestamptz[]
language plpgsql
set search_path = ''
as $$
declare
    v_slots timestamptz[] := pg_catalog.array_fill(
        null::timestamptz, array[pg_catalog.cardinality(p_paces)]
    );
    v_pace text;
    v_next timestamptz;
    v_row record;
begin
    for v_pace in select distinct p.name from unnest(p_paces) as p (name) order by p.name loop
        insert into duebook.catch_up_pace (pace, next_at) values (v_pace, p_now)
        on conflict do nothing;
        select greatest(c.next_at, p_now) into strict v_next
        from duebook.catch_up_pace as c
        where c.pace = v_pace
        for update;
        for v_row in
            select m.position, m.limit_at, m.rate
            from unnest(p_paces, p_rates, p_limits) with ordinality
                as m (pace, rate, limit_at, position)
            where m.pace = v_pace
            order by m.position
        loop
            if v_next < v_row.limit_at then
                v_slots[v_row.position] := v_next;
                v_next := v_next + interval '1 minute' / v_row.rate;
            end if;
        end loop;
        update duebook.catch_up_pace as c set next_at = v_next where c.pace = v_pace;
    end loop;
    return v_slots;
end;
$$;
comment on function duebook.take_catch_up_slots(text[], integer[], timestamptz[], timestamptz) is
'When each of some missed intents may be sent, in the order of the arrays, so that catching up keeps its rate; null where no slot is left before its limit.';
