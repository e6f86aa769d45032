"""Keeps house: partitions of the months to come, and what is older than it is to be kept.

Identities, current entries, outcomes and receipt keys are never deleted; what goes by age is old
versions with their bodies (a partition at a time) and raw bodies of webhooks. Without [retention]
everything is kept.
"""

from __future__ import annotations

from typing import Any, Final

from psycopg.rows import dict_row

from duebook.config import RetentionConfig
from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.services.imports import database_errors

MONTHS_AHEAD: Final = 3
_BODIES_AT_ONCE: Final = 5000


def keep_house(connect: Connect, retention: RetentionConfig, *, dry_run: bool) -> dict[str, Any]:
    """Make partitions and let go what is too old; each step commits by itself.

    Returns `{dry_run, partitions: [{partition_name, done}], dropped: [{partition_name, versions}],
    webhook_bodies}`. A dry run makes and deletes nothing. Raises UnavailableError.
    """
    report: dict[str, Any] = {
        "dry_run": dry_run,
        "partitions": [],
        "dropped": [],
        "webhook_bodies": 0,
    }
    with (
        database_errors(),
        connect() as connection,
        connection.cursor(row_factory=dict_row) as cursor,
    ):

        def rows(name: str, **values: Any) -> list[dict[str, Any]]:
            return cursor.execute(query(name), values).fetchall()

        if not dry_run:
            report["partitions"] = rows("make_partitions", months=MONTHS_AHEAD)
        if retention.entry_versions is not None:
            report["dropped"] = rows(
                "drop_partitions", kept_for=retention.entry_versions, is_dry_run=dry_run
            )
        if retention.webhook_bodies is not None and dry_run:
            [found] = rows("count_old_webhook_bodies", kept_for=retention.webhook_bodies)
            report["webhook_bodies"] = found["bodies"]
        elif retention.webhook_bodies is not None:
            while True:
                [gone] = rows(
                    "delete_webhook_bodies",
                    kept_for=retention.webhook_bodies,
                    row_limit=_BODIES_AT_ONCE,
                )
                report["webhook_bodies"] += gone["deleted"]
                if gone["deleted"] < _BODIES_AT_ONCE:
                    break
    return report
