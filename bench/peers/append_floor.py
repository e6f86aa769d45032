"""The limit: attempt and outcome rows appended by bare SQL, with their primary keys, no more.

Whatever keeps one attempt and one outcome a promise pays at least this. Batches are as large as a
sender's, one transaction each.
"""

from __future__ import annotations

from typing import Any

import psycopg

from bench.peers.starting_line import database_url, options, run_from_common_start
from bench.statements import statement


def main() -> None:
    wanted = options()
    rows, batch = int(wanted["rows"]), int(wanted["batch_size"])
    attempts, outcomes = statement("append_attempts"), statement("append_outcomes")
    step = batch * int(wanted["processes"])
    with psycopg.connect(database_url(), autocommit=True) as connection:

        def append() -> dict[str, Any]:
            appended = 0
            for first in range(batch * int(wanted["process"]), rows, step):
                chunk = {
                    "first": first,
                    "last": min(first + batch, rows) - 1,
                    "accounts": int(wanted["accounts"]),
                }
                with connection.transaction():
                    connection.execute(attempts, chunk)
                    connection.execute(outcomes, chunk)
                appended += chunk["last"] - first + 1
            return {"appended": appended}

        run_from_common_start(append)


if __name__ == "__main__":
    main()
