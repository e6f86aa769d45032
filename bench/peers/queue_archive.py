"""A message queue in PostgreSQL, by PGMQ's own statements: read a batch, archive it, go on.

Nothing is sent; there is no gate, no attempt before the send, no fairness, no token.
"""

from __future__ import annotations

from typing import Any

import psycopg

from bench.peers.starting_line import database_url, options, run_from_common_start
from bench.statements import statement


def main() -> None:
    most = {"most": int(options()["batch_size"])}
    read, archive = statement("read_messages"), statement("archive_messages")
    with psycopg.connect(database_url(), autocommit=True) as connection:

        def drain() -> dict[str, Any]:
            archived = 0
            while messages := connection.execute(read, most, prepare=True).fetchall():
                done = connection.execute(
                    archive,
                    {"msg_ids": [message[0] for message in messages]},
                    prepare=True,
                )
                archived += done.rowcount
            return {"archived": archived}

        run_from_common_start(drain)


if __name__ == "__main__":
    main()
