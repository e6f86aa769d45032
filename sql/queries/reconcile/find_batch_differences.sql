-- name: find_batch_differences
-- What a complete batch leaves unexplained is its own difference, never hidden.
insert into finding (kind, subject, batch_ref, provider_minor, currency, severity)
select
    'unexplained_remainder',
    concat('batch:', b.batch_ref, ':', b.currency),
    b.batch_ref,
    b.difference_minor,
    b.currency,
    'high'
from affected_batch as a
inner join duebook.settlement_batch as b
    on b.provider_account = :provider_account and a.batch_ref = b.batch_ref
where b.status = 'not_closed';
