-- name: store_superseded
-- Appends what this run was told about a new or changed entry before the newest word, where it said
-- something else, and moves the number of the newest word behind it.
with candidate as (
    select distinct on (a.entry_id, s.gross_minor, s.net_minor, s.fee_minor, s.entry_status)
        s.*,
        a.version as first_version
    from superseded_entry as s
    inner join applied_entry as a on s.entry_id = a.entry_id
    left join duebook.settlement_entry as c
        on c.provider_account = :provider_account and s.entry_id = c.entry_id
    where
        a.change in ('new', 'changed')
        and (s.gross_minor, s.net_minor, s.fee_minor, s.entry_status)
        is distinct from (a.gross_minor, a.net_minor, a.fee_minor, a.entry_status)
        and (
            c.entry_id is null
            or (s.gross_minor, s.net_minor, s.fee_minor, s.entry_status)
            is distinct from (c.gross_minor, c.net_minor, c.fee_minor, c.entry_status)
        )
    order by
        a.entry_id, s.gross_minor, s.net_minor, s.fee_minor, s.entry_status, s.position desc
),

numbered as (
    select
        c.*,
        c.first_version - 1
        + row_number() over (partition by c.entry_id order by c.position desc) as version
    from candidate as c
),

stored as (
    insert into duebook.settlement_entry_version (
        provider_account, entry_id, version, is_current_when_stored, entry_type, provider_type,
        batch_ref, payment_ref, provider_payment_ref, gross_minor, fee_minor, net_minor, currency,
        net_currency, entry_status, occurred_at, available_at, source_order, source, file_id,
        line_no, run_id, body
    )
    select
        :provider_account,
        n.entry_id,
        n.version,
        false,
        n.entry_type,
        n.provider_type,
        n.batch_ref,
        n.payment_ref,
        n.provider_payment_ref,
        n.gross_minor,
        n.fee_minor,
        n.net_minor,
        n.currency,
        n.net_currency,
        n.entry_status,
        n.occurred_at,
        n.available_at,
        n.source_order,
        n.source,
        f.file_id,
        n.line_no,
        :run_id,
        b.body
    from numbered as n
    inner join staged_source as f on n.source_no = f.source_no
    inner join entry_body as b on n.source_no = b.source_no and n.line_no = b.line_no
    returning entry_id
)

update applied_entry as a
set version = a.version + k.stored_before
from (
    select
        s.entry_id,
        count(*)::integer as stored_before
    from stored as s
    group by s.entry_id
) as k
where a.entry_id = k.entry_id;
