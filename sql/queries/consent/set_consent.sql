-- name: set_consent
-- Records what an account decided.
select
    duebook.set_consent(
        :account_id::text,
        :kind::text,
        :channel::text,
        :granted::boolean,
        :source::text,
        :decided_at::timestamptz
    ) as done;
