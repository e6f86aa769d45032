"""The benchmarks' own PostgreSQL: durable, in a temporary home, gone when the run is over."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import psycopg
import psycopg.conninfo

from bench.statements import statement
from duebook.db.connect import Connect, Limits, connect_url
from duebook.db.embedded import EmbeddedServer

_NO_LIMITS = Limits(statement=0, lock=0, idle_in_transaction=0)


def parameters() -> dict[str, str]:
    """The settings that matter, stated in full: nothing that keeps a promise is off.

    Memory as one would set it on a server of this size; checkpoints far apart, so that no contender
    is measured beside another one's write-back.
    """
    quarter_mb = int(psutil.virtual_memory().total / 2**20 / 4)
    return {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "shared_buffers": f"{min(4096, max(128, quarter_mb))}MB",
        "work_mem": "64MB",
        "maintenance_work_mem": "256MB",
        "max_wal_size": "16GB",
        "checkpoint_timeout": "15min",
        "wal_compression": "off",
        "max_parallel_workers_per_gather": "2",
        "jit": "off",
    }


class BenchServer:
    """A server and the databases of its cases. A context manager: leaving removes everything."""

    def __init__(self, *, is_profiled: bool = False, durable: bool = True) -> None:
        self.parameters = parameters() if durable else {}
        self.is_profiled = is_profiled
        self._durable = durable
        extra = {
            "shared_preload_libraries": "pg_stat_statements",
            "pg_stat_statements.track": "all",
        }
        self._loaded = extra if is_profiled else {}

    def __enter__(self) -> Self:
        self.home = Path(tempfile.mkdtemp(prefix="duebook-bench-"))
        self._server = EmbeddedServer(
            self.home, durable=self._durable, parameters={**self.parameters, **self._loaded}
        )
        try:
            self._server.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        self._server.destroy()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def administration_url(self) -> str:
        """A database that no case uses."""
        return self._server.url("postgres")

    def create(self, name: str) -> str:
        """A new, empty database; its URL."""
        return self._server.ensure_database(name)

    @contextmanager
    def copy_of(self, template: str) -> Iterator[str]:
        """The URL of a copy of the database `template`; dropped at the end."""
        name = f"{template}_copy"
        names = {"name": name, "template": template}
        self._administer("build_copy_database", names, self._server.url("postgres"))
        try:
            yield self._server.url(name)
        finally:
            self.drop(name)

    def drop(self, name: str) -> None:
        """Drop a database, whoever is still connected."""
        # By the superuser: autovacuum may be in it, which is nobody's to end but his.
        self._administer("build_drop_database", {"name": name}, self._server.superuser_url())

    def settle(self, url: str) -> None:
        """What a quiet hour would do: vacuum, statistics, and everything written to disk."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement("vacuum_everything"))
        self.write_back()

    def write_back(self) -> None:
        """Write every dirty page now, so that nobody pays for what somebody else left."""
        with psycopg.connect(self._server.superuser_url(), autocommit=True) as connection:
            connection.execute(statement("write_checkpoint"))

    def start_profile(self, url: str) -> None:
        """Count statements from here on. Nothing happens on a server that is not profiled."""
        if self.is_profiled:
            database = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
            with psycopg.connect(self._server.superuser_url(database), autocommit=True) as conn:
                conn.execute(statement("create_statistics_extension"))
                conn.execute(statement("reset_statement_statistics"))

    def read_profile(self, url: str) -> list[tuple[Any, ...]]:
        """The statements that took longest since `start_profile`: total ms, calls, rows, text."""
        if not self.is_profiled:
            return []
        database = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
        with psycopg.connect(self._server.superuser_url(database), autocommit=True) as conn:
            return conn.execute(statement("list_slowest_statements")).fetchall()

    def _administer(self, name: str, names: Mapping[str, str], url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute(statement(name), names).fetchone()
            assert row is not None
            connection.execute(row[0])


def connector(url: str) -> Connect:
    """What Duebook's services take: opens autocommit connections to `url`."""
    return partial(connect_url, url, autocommit=True, application_name="bench", limits=_NO_LIMITS)
