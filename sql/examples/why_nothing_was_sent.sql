-- Why did the account `fred` get nothing? Each of its payments with what the provider has said of
-- it, and the notice that it made, if one. `duebook explain fred` tells the same as a story.
select
    p.payment_id,
    p.settled_status,
    p.expected_on_provider,
    d.kind as differs,
    i.kind as notice,
    case
        when i.state is not null then concat_ws(': ', i.state, i.reason)
        when p.entry_count = 0 then 'the provider has said nothing of it'
        else 'nothing has changed that is told'
    end as why
from duebook_reports.ledger_vs_provider as p
left join duebook_reports.intents as i
    on p.account_id = i.account_id and p.payment_id = i.payment_id
left join duebook_reports.discrepancies as d
    on p.account_id = d.account_id and p.payment_id = d.payment_id and d.closed_at is null
where p.account_id = 'fred'
order by p.payment_id, i.kind;
