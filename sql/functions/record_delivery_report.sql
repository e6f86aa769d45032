-- Keeps what a provider said later of a message, and suppresses the addresses that it names dead.
-- A report may overtake the outcome of its message: then it waits for it (settle_delivery_reports).
-- Returns recorded, or known for what was told before.
create or replace function duebook.record_delivery_report(
    p_channel text,
    p_provider_message_id text,
    p_status text,
    p_code text,
    p_reported_at timestamptz,
    p_source text,
    p_suppression text default null
) returns text
language plpgsql
set search_path = ''
as $$
declare
    v_report_id bigint;
begin
    insert into duebook.delivery_report as r (
        channel, provider_message_id, status, code, suppression, reported_at, source
    )
    values (
        p_channel, p_provider_message_id, p_status, p_code, p_suppression, p_reported_at, p_source
    )
    on conflict do nothing
    returning r.delivery_report_id into v_report_id;
    if v_report_id is null then
        return 'known';
    end if;
    if p_suppression is not null then
        insert into duebook.pending_report (delivery_report_id, give_up_at)
        values (v_report_id, pg_catalog.clock_timestamp() + interval '7 days');
        perform duebook.settle_delivery_reports(array[v_report_id]);
    end if;
    return 'recorded';
end;
$$;
comment on function duebook.record_delivery_report(
    text, text, text, text, timestamptz, text, text
) is 'Keeps what a provider said later of a message. Returns recorded or known.';
