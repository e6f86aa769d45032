-- name: drop_contact_slots
-- Messages so old that no contact cap looks back to them, at most so many.
delete from duebook.contact_slot as s
where (s.account_id, s.intent_id) in (
    select
        o.account_id,
        o.intent_id
    from duebook.contact_slot as o
    where
        o.taken_at < clock_timestamp() - coalesce(
            (select max(c.per) from duebook.contact_cap as c), interval '0'
        )
    order by o.taken_at
    limit :most::integer
);
