-- name: stage_adyen
-- Rows of Adyen's settlement detail report as entries. Fees are in net currency and positive. A row
-- without a Psp Reference belongs to the account: its gross is its net, and its identity is made of
-- batch, type and references (of MiscCosts also the amount, since its references repeat).
-- With :is_filtered only rows are laid down that differ from the current version of their entry:
-- writing a million unchanged rows costs more than finding that they are unchanged.
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
        m.source_no,
        m.line_no,
        case
            when not m.is_account_row
                then concat(m.psp_reference, ':', m.lower_type, ':', m.modification_reference)
            else concat_ws(
                ':',
                'batch' || m.batch_number,
                m.lower_type,
                coalesce(m.modification_reference, ''),
                coalesce(m.modification_merchant_reference, ''),
                m.net_currency,
                case when m.lower_type = 'misccosts' then (m.net * m.net_factor)::bigint end
            )
        end as entry_id,
        coalesce(m.entry_type, 'other') as entry_type,
        m.type as provider_type,
        m.batch_number as batch_ref,
        case when not m.is_account_row then m.merchant_reference end as payment_ref,
        m.psp_reference as provider_payment_ref,
        case when m.has_gross then m.gross * m.gross_factor else m.net * m.net_factor end::bigint
            as gross_minor,
        (m.fee * m.net_factor)::bigint as fee_minor,
        (m.net * m.net_factor)::bigint as net_minor,
        case when m.has_gross then m.gross_currency else m.net_currency end as currency,
        m.net_currency,
        'settled' as entry_status,
        case
            when (m.created at time zone m.utc_offset) at time zone m.zone = m.created
                then m.created at time zone m.utc_offset
            else m.created at time zone m.zone
        end as occurred_at,
        case
            when (m.booked at time zone m.booked_offset) at time zone m.booked_zone = m.booked
                then m.booked at time zone m.booked_offset
            else m.booked at time zone m.booked_zone
        end as available_at,
        case when not m.has_odd_text then m.batch_number::bigint end as source_order,
        s.name as source,
        m.source_hash,
        m.has_odd_text
        or m.net_factor is null
        or m.zone is null
        or m.created is null
        or m.type is null
        or (m.booked is not null and m.booked_zone is null)
        or (m.has_gross and m.gross_factor is null)
        or not m.has_net
        or m.longest_reference > 200
        or (scale(m.net) > m.net_exponent and min_scale(m.net) > m.net_exponent)
        or (scale(m.fee) > m.net_exponent and min_scale(m.fee) > m.net_exponent)
        or (
            m.has_gross
            and scale(m.gross) > m.gross_exponent
            and min_scale(m.gross) > m.gross_exponent
        )
            as is_suspect
    from (
        select
            r.source_no,
            r.line_no,
            r.type,
            lower(r.type) as lower_type,
            r.psp_reference,
            r.psp_reference is null as is_account_row,
            r.merchant_reference,
            r.modification_reference,
            r.modification_merchant_reference,
            r.batch_number,
            r.source_hash,
            t.entry_type,
            r.gross_currency,
            r.net_currency,
            g.factor as gross_factor,
            g.exponent as gross_exponent,
            n.factor as net_factor,
            n.exponent as net_exponent,
            r.has_odd_text,
            r.psp_reference is not null and coalesce(r.gross_credit, r.gross_debit) is not null
                as has_gross,
            coalesce(r.net_credit, r.net_debit) is not null
            or coalesce(lower(r.type) like '%externally', false) as has_net,
            greatest(
                2 * char_length(r.psp_reference),
                char_length(r.merchant_reference),
                2.5 * char_length(r.modification_reference),
                2.5 * char_length(r.modification_merchant_reference),
                0
            ) as longest_reference,
            case
                when not r.has_odd_text
                    then coalesce(r.gross_credit::numeric, 0) - coalesce(r.gross_debit::numeric, 0)
            end as gross,
            case
                when not r.has_odd_text
                    then coalesce(r.net_credit::numeric, 0) - coalesce(r.net_debit::numeric, 0)
            end as net,
            case
                when not r.has_odd_text
                    then
                        coalesce(r.commission::numeric, 0) + coalesce(r.markup::numeric, 0)
                        + coalesce(r.scheme_fees::numeric, 0) + coalesce(r.interchange::numeric, 0)
            end as fee,
            case when not r.has_odd_text then r.creation_date::timestamp end as created,
            z.zone,
            z.utc_offset,
            case when not r.has_odd_text then r.booking_date::timestamp end as booked,
            b.zone as booked_zone,
            b.utc_offset as booked_offset
        from (
            select
                w.*,
                q.source_hash,
                coalesce(
                    translate(
                        concat(
                            w.gross_credit, w.gross_debit, w.net_credit, w.net_debit, w.commission,
                            w.markup, w.scheme_fees, w.interchange, w.batch_number
                        ),
                        '0123456789.-',
                        ''
                    ) <> ''
                    or translate(w.creation_date, '0123456789-: ', '') not in ('', 'T')
                    or translate(coalesce(w.booking_date, ''), '0123456789-: ', '') not in ('', 'T')
                    or w.batch_number like '%.%'
                    or char_length(w.batch_number) > 18
                    or coalesce(w.psp_reference like '%E+%', false)
                    or (
                        :has_control_characters::boolean
                        and concat(
                            w.psp_reference, w.merchant_reference, w.modification_reference,
                            w.modification_merchant_reference
                        ) ~ '[\x01-\x1f\x7f]'
                    ),
                    true
                ) as has_odd_text
            from candidate_row as q
            inner join raw_row as w on q.source_no = w.source_no and q.line_no = w.line_no
            offset 0
        ) as r
        left join staged_type as t on lower(r.type) = t.provider_type
        left join staged_exponent as g on r.gross_currency = g.currency
        left join staged_exponent as n on r.net_currency = n.currency
        left join staged_zone as z on r.timezone = z.abbreviation
        left join staged_zone as b on r.booking_zone = b.abbreviation
        offset 0
    ) as m
    inner join staged_source as s on m.source_no = s.source_no
    offset 0
) as f
left join duebook.settlement_entry as c
    on
        :is_filtered::boolean
        and c.provider_account = :provider_account
        and f.entry_id = c.entry_id
where
    not :is_filtered::boolean
    or f.provider_payment_ref is null
    or f.is_suspect
    or c.entry_id is null
    or (
        f.gross_minor,
        f.net_minor,
        f.fee_minor,
        f.entry_status,
        f.entry_type,
        f.provider_type,
        f.batch_ref,
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
