-- name: end_lacking_occurrences
-- Ends occurrences that the rule, or the clock, does not have any more; each is audited.
with ended as materialized (
    select
        e.account_id,
        e.intent_id,
        e.done
    from duebook.end_waiting_intents(
        :account_ids::text[],
        :intent_ids::bigint[],
        'cancel',
        'cancelled',
        :why::text,
        :ended_by::text
    ) as e
)

insert into duebook.audit_event (actor, action, account_id, subject, detail)
select
    :ended_by,
    'cancel_occurrence',
    e.account_id,
    i.operation_key,
    jsonb_build_object('reason', :why::text)
from ended as e
inner join duebook.intent as i on e.account_id = i.account_id and e.intent_id = i.intent_id
where e.done <> 'had_ended';
