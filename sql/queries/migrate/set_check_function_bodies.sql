-- name: set_check_function_bodies
-- Off while functions are made in any order, on when all are there; for this transaction only.
select set_config('check_function_bodies', :value, true) as setting;
