-- name: read_discrepancy
-- One discrepancy as the report has it.
select d.*
from duebook_reports.discrepancies as d
where
    d.provider_account = :provider_account::text
    and d.kind = :kind::text
    and d.subject = :subject::text;
