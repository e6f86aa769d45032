-- name: is_pausable
-- Whether anything is known by that name, so that a slip of the pen pauses nothing in silence.
select
    case :scope::text
        when 'all' then true
        when 'kind'
            then
                exists (
                    select from duebook.intent_kind as k
                    where k.kind = :name::text
                )
        when 'channel'
            then
                exists (
                    select from duebook.intent_kind as k
                    where k.channel = :name::text
                )
                or exists (
                    select from duebook.contact as c
                    where c.channel = :name::text
                )
        when 'account'
            then
                exists (
                    select from duebook.contact as c
                    where c.account_id = :name::text
                )
                or exists (
                    select from duebook.ledger_payment as l
                    where l.account_id = :name::text
                )
                or exists (
                    select from duebook.intent as i
                    where i.account_id = :name::text
                )
                or exists (
                    select from duebook.schedule as s
                    where s.account_id = :name::text
                )
    end as is_known;
