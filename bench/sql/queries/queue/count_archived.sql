-- name: count_archived
-- What is archived, and what is left.
select
    (select count(*) from public.a_bench) as archived,
    (select count(*) from public.q_bench) as waiting;
