-- name: read_hold
-- One hold as analysts see it, and the key of the notice of its refund, if it made one.
select
    h.*,
    i.operation_key as refund_key
from duebook_reports.holds as h
left outer join duebook.intent as i
    on h.account_id = i.account_id and i.subject = 'hold:' || h.hold and i.kind = 'hold_refund'
where h.account_id = :account_id and h.hold = :hold;
