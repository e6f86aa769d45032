-- The operation key of a hold's expiry; the same as duebook.domain.keys.HoldExpiryKey.
-- Written out, and not by key_part(): a report calls it for analysts, who can't call into duebook.
create or replace function duebook.hold_expiry_key(p_hold text, p_expires_at timestamptz)
returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
    select
        pg_catalog.concat(
            'expire:hold:',
            pg_catalog.replace(pg_catalog.replace(p_hold, '%', '%25'), ':', '%3A'),
            ':',
            pg_catalog.to_char(p_expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS'),
            case
                when pg_catalog.date_trunc('second', p_expires_at, 'UTC') <> p_expires_at
                    then pg_catalog.to_char(p_expires_at at time zone 'UTC', '.US')
            end,
            'Z'
        );
$$;
comment on function duebook.hold_expiry_key(text, timestamptz) is
'The operation key of the expiry of a hold: expire:hold:<hold>:<expires_at>.';
