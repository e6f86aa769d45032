-- name: reject_contacts
-- The first fault of every row of a contacts file that can't be taken.
insert into staged_reject (source_no, line_no, column_name, value, reason, expected, raw)
select
    1,
    r.line_no,
    f.column_name,
    f.value,
    f.reason,
    f.expected,
    (jsonb_strip_nulls(to_jsonb(r)) - '{source_no,line_no}'::text[])::text
from raw_row as r
left join known_zone as z on r.zone = z.zone
cross join lateral (
    select v.*
    from (
        values
        (
            1, 'account_id', r.account_id,
            duebook.name_fault(r.account_id), '1 to 200 printable characters'
        ),
        (
            2, 'channel', r.channel,
            case
                when r.channel is null then 'empty'
                when lower(r.channel) !~ '^[a-z][a-z0-9_]{0,62}$' then 'not a channel'
            end,
            'a channel such as email'
        ),
        (
            3, 'address', r.address,
            case
                when r.address is null then 'empty'
                when r.address ~ '[\x01-\x1f\x7f]' then 'control character'
                when char_length(r.address) > 320 then 'longer than 320 characters'
                when
                    lower(r.channel) ~ '^email(_|$)'
                    and r.address !~ '^[^@[:space:],;<>"()]+@[^@[:space:],;<>"()]+$'
                    then 'not an e-mail address'
            end,
            'one address of that channel'
        ),
        (
            4, 'zone', r.zone,
            case
                when r.zone is null then 'empty'
                when z.zone is null then 'unknown time zone'
            end,
            'an IANA time zone such as Europe/Amsterdam'
        ),
        (
            5, 'locale', r.locale,
            case
                when r.locale !~ '^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$' then 'not a language tag'
            end,
            'a language tag such as en or nl-BE'
        ),
        (
            6, 'region', r.region,
            case
                when r.region ~ '[\x01-\x1f\x7f]' or char_length(r.region) > 64 then 'not a region'
            end,
            'at most 64 printable characters'
        )
    ) as v (position, column_name, value, reason, expected)
    where v.reason is not null
    order by v.position
    limit 1
) as f;
