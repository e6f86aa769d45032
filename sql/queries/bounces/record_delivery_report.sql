-- name: record_delivery_report
-- Keeps what a mail told of one of ours; recorded, or known where it was told before.
select
    duebook.record_delivery_report(
        :channel::text,
        :message_id::text,
        :status::text,
        :code::text,
        :reported_at::timestamptz,
        :source::text,
        :suppression::text
    ) as result;
