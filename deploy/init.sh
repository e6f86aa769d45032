#!/usr/bin/env bash
# Brings Airflow's and Duebook's databases to this version. Safe to run again, and after either
# database was dropped: nothing that Duebook promised is kept in Airflow's.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)

# The UI's password: SimpleAuthManager reads a file, and makes one up when there is none.
(
    umask 077
    python - "$AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE" <<'PYTHON'
import json, os, pathlib, sys

pathlib.Path(sys.argv[1]).write_text(json.dumps({"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]}))
PYTHON
)

airflow db migrate
airflow pools import "$here/plugins/duebook/airflow/pools.json"

python -m duebook.cli migrate
python -m duebook.cli apply "$DUEBOOK_CONFIG_FILE"
