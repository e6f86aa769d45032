-- name: stage_contacts
-- Rows of a contacts file; an account's channel that stands more than once is as its last line
-- says.
insert into staged_contact (line_no, account_id, channel, address, zone, locale, region)
select distinct on (r.account_id, lower(r.channel))
    r.line_no,
    r.account_id,
    lower(r.channel),
    r.address,
    r.zone,
    coalesce(r.locale, 'en'),
    r.region
from raw_row as r
order by r.account_id, lower(r.channel), r.line_no desc;
