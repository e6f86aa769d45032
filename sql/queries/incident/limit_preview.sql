-- name: limit_preview
-- A preview holds locks: no statement of it may take long, nor wait for another's.
select
    set_config('statement_timeout', :statement_ms::text, true),
    set_config('lock_timeout', :lock_ms::text, true),
    set_config('idle_in_transaction_session_timeout', :idle_ms::text, true);
