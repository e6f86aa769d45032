-- A recipient leaves a topic by the link of a message: the one thing that the public edge may do
-- beside handing in receipts. Again it changes nothing. Returns recorded or known.
create or replace function duebook.unsubscribe(
    p_account_id text,
    p_kind text,
    p_channel text,
    p_source text
) returns text
language plpgsql
security definer
set search_path = ''
as $$
begin
    if exists (
        select
        from duebook.consent as c
        where
            c.account_id = p_account_id
            and c.kind = p_kind
            and c.channel = p_channel
            and not c.granted
    ) then
        return 'known';
    end if;
    return duebook.set_consent(p_account_id, p_kind, p_channel, false, p_source);
end;
$$;
comment on function duebook.unsubscribe(text, text, text, text) is
'A recipient leaves a topic by the link of a message. Returns recorded or known.';
