-- name: read_receiver_state
-- Whether this login can hand in receipts: the database answers, is at this version, and lets it.
select
    coalesce(
        has_function_privilege(
            to_regprocedure('duebook.record_receipt(text,text,text,text,jsonb,bytea)'),
            'execute'
        ),
        false
    ) as may_receive;
