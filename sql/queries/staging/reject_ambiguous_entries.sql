-- name: reject_ambiguous_entries
-- Rows of one file that claim one identity and say different things: a spreadsheet rounded their
-- references, or they are no settlement rows. None of them is taken, since any pick would be a
-- guess.
with ambiguous as (
    select
        e.source_no,
        e.entry_id
    from staged_entry as e
    group by e.source_no, e.entry_id
    having
        count(*) > 1
        and count(distinct(e.payment_ref, e.gross_minor, e.net_minor, e.fee_minor, e.occurred_at))
        > 1
),

taken as (
    delete from staged_entry as e
    using ambiguous as a
    where (e.source_no, e.entry_id) = (a.source_no, a.entry_id)
    returning e.source_no, e.line_no, e.provider_payment_ref
)

insert into staged_reject (source_no, line_no, column_name, value, reason, expected)
select
    t.source_no,
    t.line_no,
    'Psp Reference',
    t.provider_payment_ref,
    'other rows of this file have the same references and say something else',
    'one row for each Psp Reference, Type and Modification Reference'
from taken as t;
