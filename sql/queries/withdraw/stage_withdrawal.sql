-- name: stage_withdrawal
-- What counts once a file is withdrawn, as rows that are told now: of each entry whose current
-- version is the file's, the newest version before it that was current and is no withdrawn file's;
-- else the entry as it is, withdrawn. They stand where the file stood in the source's order, so
-- that a corrected file of the same place takes theirs.
insert into staged_entry (
    source_no, line_no, entry_id, entry_type, provider_type, batch_ref, payment_ref,
    provider_payment_ref, gross_minor, fee_minor, net_minor, currency, net_currency, entry_status,
    occurred_at, available_at, source_order, source, body
)
select
    0,
    row_number() over (order by e.entry_id),
    e.entry_id,
    coalesce(v.entry_type, e.entry_type),
    coalesce(v.provider_type, e.provider_type),
    coalesce(v.batch_ref, e.batch_ref),
    coalesce(v.payment_ref, e.payment_ref),
    coalesce(v.provider_payment_ref, e.provider_payment_ref),
    coalesce(v.gross_minor, e.gross_minor),
    coalesce(v.fee_minor, e.fee_minor),
    coalesce(v.net_minor, e.net_minor),
    coalesce(v.currency, e.currency),
    coalesce(v.net_currency, e.net_currency),
    coalesce(v.entry_status, 'withdrawn'),
    coalesce(v.occurred_at, e.occurred_at),
    coalesce(v.available_at, e.available_at),
    e.source_order,
    :source_name::text,
    v.body
from duebook.settlement_entry as e
left join lateral (
    select o.*
    from duebook.settlement_entry_version as o
    where
        o.provider_account = e.provider_account
        and o.entry_id = e.entry_id
        and o.version < e.version
        and o.is_current_when_stored
        and o.entry_status <> 'withdrawn'
        and o.file_id is distinct from :file_id::bigint
        and not exists (
            select
            from duebook.settlement_file as f
            where f.file_id = o.file_id and f.withdrawn_at is not null
        )
    order by o.version desc
    limit 1
) as v on true
where e.provider_account = :provider_account and e.file_id = :file_id::bigint;
