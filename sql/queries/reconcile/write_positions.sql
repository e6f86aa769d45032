-- name: write_positions
-- Positions of affected payments that are new or differ.
insert into duebook.settled_position as s (
    account_id, payment_id, provider_account, currency, captured_minor, refunded_minor,
    charged_back_minor, pending_minor, fee_minor, net_minor, entry_count, run_id
)
select
    n.account_id,
    n.payment_id,
    :provider_account,
    n.currency,
    n.captured_minor,
    n.refunded_minor,
    n.charged_back_minor,
    n.pending_minor,
    n.fee_minor,
    n.net_minor,
    n.entry_count,
    :run_id
from position_new as n
order by n.account_id, n.payment_id, n.currency
on conflict (account_id, payment_id, provider_account, currency) do update
    set
        captured_minor = excluded.captured_minor,
        refunded_minor = excluded.refunded_minor,
        charged_back_minor = excluded.charged_back_minor,
        pending_minor = excluded.pending_minor,
        fee_minor = excluded.fee_minor,
        net_minor = excluded.net_minor,
        entry_count = excluded.entry_count,
        run_id = excluded.run_id
    where
    (
        s.captured_minor, s.refunded_minor, s.charged_back_minor, s.pending_minor, s.fee_minor,
        s.net_minor, s.entry_count
    )
    is distinct from
    (
        excluded.captured_minor, excluded.refunded_minor, excluded.charged_back_minor,
        excluded.pending_minor, excluded.fee_minor, excluded.net_minor, excluded.entry_count
    );
