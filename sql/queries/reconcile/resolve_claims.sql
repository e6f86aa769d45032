-- name: resolve_claims
-- Whose payment: of the references that count, in the order of :match_on, the first that any booked
-- payment has, expected within :match_window of the entry where that is stated. Of those payments:
-- one routed to this provider account, else an unrouted one, else any other; one that the books
-- cancelled only where no other has it. Two of equal rank are no answer, and neither is picked. A
-- claim that stands stays while the payment has the reference: an import never undoes evidence, but
-- gives it to the account that a payment was booked anew for.
with candidate as (
    select
        c.entry_id,
        p.account_id,
        p.payment_id,
        array_position(:match_on::text[], 'payment_ref') as key_rank,
        case
            when p.provider_account = :provider_account then 1
            when p.provider_account is null then 2
            else 3
        end + case when p.is_void then 10 else 0 end as rank,
        (c.old_account_id, c.old_payment_id) = (p.account_id, p.payment_id) as is_standing
    from claim as c
    inner join duebook.ledger_payment as p on c.payment_ref = p.reference
    where
        'payment_ref' = any(:match_on::text[])
        and (
            :match_window::interval is null
            or p.expected_at between c.occurred_at - :match_window::interval
            and c.occurred_at + :match_window::interval
            or (c.old_account_id, c.old_payment_id) = (p.account_id, p.payment_id)
        )
    union all
    select
        c.entry_id,
        p.account_id,
        p.payment_id,
        array_position(:match_on::text[], 'provider_payment_ref') as key_rank,
        case
            when p.provider_account = :provider_account then 1
            when p.provider_account is null then 2
            else 3
        end + case when p.is_void then 10 else 0 end as rank,
        (c.old_account_id, c.old_payment_id) = (p.account_id, p.payment_id) as is_standing
    from claim as c
    inner join duebook.ledger_payment as p on c.provider_payment_ref = p.reference
    where
        'provider_payment_ref' = any(:match_on::text[])
        and (
            :match_window::interval is null
            or p.expected_at between c.occurred_at - :match_window::interval
            and c.occurred_at + :match_window::interval
            or (c.old_account_id, c.old_payment_id) = (p.account_id, p.payment_id)
        )
),

best as (
    select
        r.entry_id,
        r.key_rank,
        r.rank,
        bool_or(r.is_standing) as is_standing,
        min(r.account_id) filter (where r.is_standing) as standing_account_id,
        min(r.payment_id) filter (where r.is_standing) as standing_payment_id,
        count(*) as candidates,
        min(r.account_id) as account_id,
        min(r.payment_id) as payment_id,
        row_number() over (partition by r.entry_id order by r.key_rank, r.rank) as position
    from candidate as r
    group by r.entry_id, r.key_rank, r.rank
),

answer as (
    select
        b.entry_id,
        max(b.candidates) filter (where b.position = 1) as candidates,
        coalesce(
            max(b.standing_account_id) filter (where b.rank < 10),
            max(b.account_id) filter (where b.position = 1 and b.candidates = 1 and b.rank < 10),
            max(b.standing_account_id),
            max(b.account_id) filter (where b.position = 1 and b.candidates = 1)
        ) as account_id,
        coalesce(
            max(b.standing_payment_id) filter (where b.rank < 10),
            max(b.payment_id) filter (where b.position = 1 and b.candidates = 1 and b.rank < 10),
            max(b.standing_payment_id),
            max(b.payment_id) filter (where b.position = 1 and b.candidates = 1)
        ) as payment_id
    from best as b
    group by b.entry_id
)

update claim as c
set
    account_id = a.account_id,
    payment_id = a.payment_id,
    candidates = a.candidates
from answer as a
where c.entry_id = a.entry_id;
