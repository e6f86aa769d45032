#!/usr/bin/env bash
# Run once by the postgres image, when its volume is empty: two databases, each with its owner.
# duebook may create roles, because `duebook migrate` makes the groups that analysts are given.
set -euo pipefail

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" \
    --dbname postgres \
    --set airflow_password="$AIRFLOW_DATABASE_PASSWORD" \
    --set duebook_password="$DUEBOOK_DATABASE_PASSWORD" <<'SQL'
set log_min_error_statement = panic;
create role airflow login password :'airflow_password';
create role duebook login createrole password :'duebook_password';
create database airflow owner airflow;
create database duebook owner duebook;
SQL
