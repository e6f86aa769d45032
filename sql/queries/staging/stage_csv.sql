-- name: stage_csv
-- Rows of a mapped CSV as entries. What has no column: fee is gross less net, net is gross less
-- fee, status is settled, source order is arrival. Rows whose status is ignored are left out.
-- With :is_filtered only rows are laid down that differ from the current version of their entry.
-- The subqueries end in `offset 0` so that an expression is computed once a row.
insert into staged_entry (
    source_no,
    line_no,
    entry_id,
    entry_type,
    provider_type,
    batch_ref,
    payment_ref,
    provider_payment_ref,
    gross_minor,
    fee_minor,
    net_minor,
    currency,
    net_currency,
    entry_status,
    occurred_at,
    available_at,
    source_order,
    source,
    source_hash,
    is_suspect
)
select
    f.source_no,
    f.line_no,
    f.entry_id,
    f.entry_type,
    f.provider_type,
    f.batch_ref,
    f.payment_ref,
    f.provider_payment_ref,
    f.gross_minor,
    f.fee_minor,
    f.net_minor,
    f.currency,
    f.net_currency,
    f.entry_status,
    f.occurred_at,
    f.available_at,
    f.source_order,
    f.source,
    f.source_hash,
    f.is_suspect
from (
    select
        v.source_no,
        v.line_no,
        v.entry_id,
        coalesce(v.entry_type, 'other') as entry_type,
        coalesce(v.type, 'row') as provider_type,
        v.batch_ref,
        v.payment_ref,
        v.provider_payment_ref,
        (v.gross * v.factor)::bigint as gross_minor,
        (
            case
                when v.fee is not null then v.fee
                when v.net is not null and v.currency = v.net_currency then v.gross - v.net
                else 0
            end
            * v.net_factor
        )::bigint as fee_minor,
        (coalesce(v.net, v.gross - coalesce(v.fee, 0)) * v.net_factor)::bigint as net_minor,
        v.currency,
        v.net_currency,
        coalesce(v.entry_status, 'settled') as entry_status,
        case
            when v.occurred_instant is not null then v.occurred_instant
            when (v.occurred at time zone v.utc_offset) at time zone v.zone = v.occurred
                then v.occurred at time zone v.utc_offset
            else v.occurred at time zone v.zone
        end as occurred_at,
        null::timestamptz as available_at,
        coalesce(
            (
                extract(epoch from coalesce(v.updated_instant, v.updated at time zone v.zone))
                * 1000000
            )::bigint,
            v.arrival_order
        ) as source_order,
        v.source,
        v.source_hash,
        coalesce(
            v.has_odd_text
            or v.factor is null
            or v.net_factor is null
            or v.zone is null
            or (v.occurred is null and v.occurred_instant is null)
            or v.gross is null
            or (v.status is not null and v.entry_status is null)
            or coalesce(min_scale(v.gross) > v.exponent, false)
            or coalesce(min_scale(v.fee) > v.net_exponent, false)
            or coalesce(min_scale(v.net) > v.net_exponent, false)
            or char_length(v.entry_id) > 200
            or coalesce(char_length(v.payment_ref) > 200, false)
            or (v.net is null and v.currency <> v.net_currency),
            true
        ) as is_suspect
    from (
        select
            w.source_no,
            w.line_no,
            w.type,
            w.status,
            t.entry_type,
            u.entry_status,
            concat_ws(':', w.entry_id_1, w.entry_id_2, w.entry_id_3) as entry_id,
            w.batch_ref,
            w.payment_ref,
            w.provider_payment_ref,
            w.currency,
            w.net_currency,
            case when w.is_minor then 1::numeric else g.factor end as factor,
            case when w.is_minor then 0 else g.exponent end as exponent,
            case when w.is_minor then 1::numeric else n.factor end as net_factor,
            case when w.is_minor then 0 else n.exponent end as net_exponent,
            case
                when not w.has_odd_text
                    then
                        w.amount_factor * coalesce(
                            w.gross::numeric,
                            case
                                when coalesce(w.credit, w.debit) is not null
                                    then
                                        coalesce(w.credit::numeric, 0)
                                        - coalesce(abs(w.debit::numeric), 0)
                            end
                        )
            end as gross,
            case when not w.has_odd_text then w.fee::numeric * w.fee_factor end as fee,
            case when not w.has_odd_text then w.amount_factor * w.net::numeric end as net,
            case
                when not w.has_odd_text and not w.has_own_offset
                    then w.occurred::timestamp
            end as occurred,
            case
                when not w.has_odd_text and w.has_own_offset
                    then w.occurred::timestamptz
            end as occurred_instant,
            case
                when not w.has_odd_text and not w.is_update_offset
                    then w.updated::timestamp
            end as updated,
            case
                when not w.has_odd_text and w.is_update_offset
                    then w.updated::timestamptz
            end as updated_instant,
            z.zone,
            z.utc_offset,
            w.arrival_order,
            s.name as source,
            w.source_hash,
            w.has_odd_text
        from (
            select
                c.*,
                q.source_hash,
                duebook.has_offset(c.occurred) as has_own_offset,
                case
                    when c.updated is not null then duebook.has_offset(c.updated)
                end as is_update_offset,
                coalesce(
                    translate(concat(c.gross, c.credit, c.debit, c.fee, c.net), '0123456789.-', '')
                    <> ''
                    or translate(c.occurred, '0123456789-: .+', '') not in ('', 'T', 'Z', 'TZ')
                    or translate(coalesce(c.updated, ''), '0123456789-: .+', '')
                    not in ('', 'T', 'Z', 'TZ')
                    or (
                        concat(c.occurred, c.updated) like '%.%'
                        and not (
                            duebook.is_time(c.occurred)
                            and duebook.is_time(coalesce(c.updated, c.occurred))
                        )
                    )
                    or c.entry_id_1 is null
                    or (
                        :has_control_characters::boolean
                        and concat(
                            c.entry_id_1, c.entry_id_2, c.entry_id_3, c.payment_ref, c.batch_ref,
                            c.provider_payment_ref
                        ) ~ '[\x01-\x1f\x7f]'
                    ),
                    true
                ) as has_odd_text
            from candidate_row as q
            inner join csv_row as c on q.source_no = c.source_no and q.line_no = c.line_no
            offset 0
        ) as w
        inner join staged_source as s on w.source_no = s.source_no
        left join staged_type as t on lower(w.type) = t.provider_type
        left join staged_status as u on lower(w.status) = u.provider_status
        left join staged_exponent as g on w.currency = g.currency
        left join staged_exponent as n on w.net_currency = n.currency
        left join staged_zone as z on w.zone_name = z.abbreviation
        offset 0
    ) as v
    where v.entry_status is distinct from 'ignored'
    offset 0
) as f
left join duebook.settlement_entry as c
    on
        :is_filtered::boolean
        and c.provider_account = :provider_account
        and f.entry_id = c.entry_id
where
    not :is_filtered::boolean
    or f.is_suspect
    or c.entry_id is null
    or (
        f.gross_minor,
        f.net_minor,
        f.fee_minor,
        f.entry_status,
        f.entry_type,
        f.provider_type,
        coalesce(f.batch_ref, c.batch_ref),
        f.payment_ref,
        f.provider_payment_ref,
        f.currency,
        f.net_currency,
        f.occurred_at,
        f.available_at
    )
    is distinct from
    (
        c.gross_minor,
        c.net_minor,
        c.fee_minor,
        c.entry_status,
        c.entry_type,
        c.provider_type,
        c.batch_ref,
        c.payment_ref,
        c.provider_payment_ref,
        c.currency,
        c.net_currency,
        c.occurred_at,
        c.available_at
    );
