-- Enters messages that are about to be sent under the contact caps of their channel, in the order
-- given, account by account. One that was entered before keeps its slot. Returns those that no cap
-- has room for, with the instant from which there is.
create or replace function duebook.take_contact_slots(
    p_channel text,
    p_account_ids text[],
    p_intent_ids bigint[]
) returns table (account_id text, intent_id bigint, free_at timestamptz)
language plpgsql
set search_path = ''
as $$
#variable_conflict use_column
declare
    v_row record;
    v_now timestamptz;
    v_free_at timestamptz;
    v_locked text := '';
begin
    for v_row in
        select w.account_id, w.intent_id
        from unnest(p_account_ids, p_intent_ids) with ordinality as w (account_id, intent_id, place)
        where not exists (
            select
            from duebook.contact_slot as s
            where s.account_id = w.account_id and s.intent_id = w.intent_id
        )
        order by w.account_id, w.place
    loop
        if v_row.account_id <> v_locked then
            -- Two senders must not see the same room; in order, so that they can't wait in a ring.
            perform pg_catalog.pg_advisory_xact_lock(
                pg_catalog.hashtextextended('duebook.contact_slot ' || v_row.account_id, 0)
            );
            v_locked := v_row.account_id;
            v_now := pg_catalog.clock_timestamp();
        end if;
        select pg_catalog.max(f.free_at) into v_free_at
        from duebook.contact_cap as c
        cross join lateral (
            -- Of the newest slots, the one that must have left before another fits.
            select s.taken_at + c.per as free_at
            from duebook.contact_slot as s
            where
                s.account_id = v_row.account_id
                and s.taken_at > v_now - c.per
                and c.channel in ('*', s.channel)
            order by s.taken_at desc
            offset c.most - 1
            limit 1
        ) as f
        where c.channel in ('*', p_channel);
        if v_free_at is null then
            insert into duebook.contact_slot (account_id, intent_id, channel, taken_at)
            values (v_row.account_id, v_row.intent_id, p_channel, v_now)
            on conflict do nothing;
        else
            account_id := v_row.account_id;
            intent_id := v_row.intent_id;
            free_at := v_free_at;
            return next;
        end if;
    end loop;
end;
$$;
comment on function duebook.take_contact_slots(text, text[], bigint[]) is
'Enters messages that are about to be sent under the contact caps. Returns those without room, with the instant from which there is.';
