-- name: deal_with_discrepancy
-- Does with a discrepancy what a person decided.
select
    duebook.deal_with_discrepancy(
        :provider_account::text, :kind::text, :subject::text, :act::text, :by::text, :reason::text,
        :assignee::text
    ) as status;
