-- name: drop_known_stale
-- What an older source tells again was stored when it told it first.
delete from applied_entry as a
where
    a.change = 'stale'
    and exists (
        select from duebook.settlement_entry_version as v
        where
            v.provider_account = :provider_account
            and v.entry_id = a.entry_id
            and (
                v.gross_minor, v.net_minor, v.fee_minor, v.entry_status, v.entry_type,
                v.provider_type, v.batch_ref, v.payment_ref, v.provider_payment_ref, v.currency,
                v.net_currency, v.occurred_at, v.available_at
            )
            is not distinct from
            (
                a.gross_minor, a.net_minor, a.fee_minor, a.entry_status, a.entry_type,
                a.provider_type, a.batch_ref, a.payment_ref, a.provider_payment_ref, a.currency,
                a.net_currency, a.occurred_at, a.available_at
            )
    );
