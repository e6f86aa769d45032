"""Writes `sql/schema.sql`: the whole schema as PostgreSQL itself says it back.

`python -m duebook.db.snapshot` makes a throwaway embedded server, migrates an empty database there
and writes what its own `pg_dump --schema-only` prints. A test compares the file with a fresh one,
so a migration is always reviewed together with what it does to the whole.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg.conninfo

from duebook.db.embedded import EmbeddedServer
from duebook.db.migrate import migrate
from duebook.db.sql import sql_root

_HEADER = """\
-- The schema after every migration, function, view and grant: written by `make schema`
-- (python -m duebook.db.snapshot), compared by tests/db/test_schema_snapshot.py. Never applied.
"""
_NOISE = re.compile(
    r"^(?:--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(?:un)?restrict .*)$", re.MULTILINE
)


def dump_schema(server: EmbeddedServer, url: str) -> str:
    r"""The schemas of Duebook in the database at `url`, as normalised SQL text.

    Without what differs from one run or login to the next: comments of pg_dump, session settings,
    owners, the random words of `\restrict`.
    """
    stated = psycopg.conninfo.conninfo_to_dict(url)
    password = str(stated.pop("password"))
    command = [
        *(str(server.binary("pg_dump")), "--schema-only", "--no-owner"),
        *("--schema=duebook", "--schema=duebook_reports"),
        *("--dbname", psycopg.conninfo.make_conninfo("", **stated)),
    ]
    text = subprocess.run(
        command,
        env={"PATH": os.environ.get("PATH", ""), "PGPASSWORD": password, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    return _HEADER + normalise(text)


def normalise(dump: str) -> str:
    """Drop pg_dump's noise and let one empty line stand between statements."""
    bare = _NOISE.sub("", _without_owner(dump))
    return "\n" + re.sub(r"\n{3,}", "\n\n", bare).strip() + "\n"


def _without_owner(dump: str) -> str:
    # The owner's own rights and the default privileges name the login that migrated.
    return re.sub(r"^(?:GRANT|REVOKE) .* (?:TO|FROM) duebook;\n", "", dump, flags=re.MULTILINE)


def make_snapshot() -> str:
    """The text of `sql/schema.sql`, from a server that lives as long as this call."""
    with tempfile.TemporaryDirectory(prefix="duebook-snapshot-") as home:
        server = EmbeddedServer(Path(home), durable=False)
        try:
            server.start()
            url = server.ensure_database("duebook")
            migrate(url)
            return dump_schema(server, url)
        finally:
            server.destroy()


def main() -> None:
    """Write the snapshot beside the SQL files."""
    path = sql_root() / "schema.sql"
    path.write_text(make_snapshot(), encoding="utf-8")
    sys.stdout.write(f"wrote {path}\n")


if __name__ == "__main__":
    main()
