-- name: pin_plans
-- A sender's statements are by key whatever the statistics of the moment say: generic plans, no
-- full scans, no joins that read whole tables.
select
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false),
    set_config('enable_material', 'off', false),
    set_config('jit', 'off', false);
