-- name: read_environment_refusal
-- Why a sender of this environment must not send from this database; null when it may.
select duebook.environment_refusal(:environment::text) as refusal;
