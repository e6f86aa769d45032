"""Lays down what a source says in temporary tables, before anything is compared or locked.

Files go in as text by COPY with their line numbers and are validated in SQL; an API's entries go in
by COPY as they arrive. Memory stays flat at any size. Nothing here outlives the session.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog
from psycopg.types.json import Jsonb

from duebook.config import ProviderAccountConfig, zone_names
from duebook.db.connect import describe
from duebook.db.sql import query
from duebook.errors import ConfigurationError, InputError
from duebook.services.mapping import require_possible
from duebook.services.raw_rows import copy_file, create_raw_rows, enter_source
from duebook.settlements import adyen
from duebook.settlements.base import ApiSource, Cursor, FileCheck, Pull, SubjectSource
from duebook.settlements.delimited import ScannedFile
from duebook.settlements.formats import Format, formats_of, recognise
from duebook.settlements.zones import ABBREVIATIONS

log = structlog.get_logger(__name__)

Progress = Callable[[str, int, int | None], None]
"""Called with the stage, how much of it is done, and of how much (None where nobody knows)."""

API_SOURCE_NO: Final = 0
_MEANING: Final = 1
"""Raise it when the same text of a file comes to mean other entries."""
_MATCHING: Final = ("expect", "match_on", "match_window", "tolerance")
"""Settings that decide what becomes of an entry, and not what its text means."""
_ENTRIES_PER_REPORT: Final = 1000
_TABLES: Final = (
    "create_staged_entry",
    "create_staged_source",
    "create_staged_reject",
    "create_suspect_row",
    "create_candidate_row",
    "create_staged_type",
    "create_staged_status",
    "create_staged_zone",
    "create_staged_batch",
)


@dataclass(frozen=True, slots=True)
class Staged:
    """What was laid down.

    `checks` is what files state about their own rows, each with the number of its file. `known` and
    `repeated` are checksums of files that were taken before, or given twice; `body` is
    the statement that finds the bodies; `is_filtered`: rows equal to the current versions, as they
    were after the run `last_run_id`, were left out, and `lay_down_all` lays them down after all.
    """

    known: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    body: str = "create_own_body"
    is_api: bool = False
    cursor: Cursor | None = None
    unknown_types: Mapping[str, int] = field(default_factory=dict)
    checks: Sequence[tuple[int, FileCheck]] = ()
    is_filtered: bool = False
    last_run_id: int | None = None
    lay_down_all: Callable[[], None] | None = None


def prepare(connection: psycopg.Connection[Any]) -> None:
    """Make the tables that a source fills; once a session."""
    connection.execute(query("set_temp_buffers"))
    connection.execute(query("set_work_memory"))
    for name in _TABLES:
        connection.execute(query(name))


def stage_files(
    connection: psycopg.Connection[Any],
    name: str,
    account: ProviderAccountConfig,
    paths: Sequence[Path],
    progress: Progress,
) -> Staged:
    """Lay down every file that was not taken before.

    All of them are looked at first. Raises InputError when one can't be read as a whole,
    RefusedError when the mapping can't be right for one.
    """
    formats = formats_of(account)
    recognised = [recognise(path, formats) for path in paths]
    scanned = [file for file, _ in recognised]
    checksums = [file.sha256 for file in scanned]
    values = {"provider_account": name, "checksums": checksums}
    known = {row[0] for row in connection.execute(query("find_known_files"), values)}
    new: dict[str, ScannedFile] = {}
    for file in scanned:
        if file.sha256 not in known:
            new.setdefault(file.sha256, file)
    repeated = [file.sha256 for file in scanned if file.sha256 not in known]
    for checksum in new:
        repeated.remove(checksum)
    taken = tuple(checksum for checksum in checksums if checksum in known)
    if not new:
        return Staged(known=taken)
    reader = _the_one_format([(f, r) for f, r in recognised if f.sha256 in new])
    for file in new.values():
        require_possible(file, reader, account)
    _prepare_reader(connection, account, reader)
    for number, file in enumerate(new.values(), start=1):
        progress("files", number - 1, len(new))
        enter_source(connection, number, file)
        copy_file(connection, number, file)
    progress("files", len(new), len(new))
    rows = _Rows(connection, reader, name, tuple(new.values()))
    is_filtered = rows.lay_down()
    return Staged(
        known=taken,
        repeated=tuple(repeated),
        checks=[
            (number, each)
            for number, file in enumerate(new.values(), start=1)
            for each in file.checks
        ],
        body=reader.body,
        unknown_types=_unknown_types(connection),
        is_filtered=is_filtered,
        last_run_id=rows.last_run_id,
        lay_down_all=rows.lay_down_all,
    )


def _the_one_format(recognised: Sequence[tuple[ScannedFile, Format]]) -> Format:
    (first, known), *others = recognised
    for file, other in others:
        if other.name != known.name:
            raise InputError(
                f"{first.name} is a {known.name}, {file.name} is not (a {other.name}): expected "
                "files of one format at a time"
            )
    return known


def _prepare_reader(
    connection: psycopg.Connection[Any], account: ProviderAccountConfig, reader: Format
) -> None:
    connection.execute(
        query("put_staged_types"),
        {"words": list(reader.types), "meanings": list(reader.types.values())},
    )
    connection.execute(
        query("put_staged_statuses"),
        {"words": list(reader.statuses), "meanings": list(reader.statuses.values())},
    )
    zones = list(ABBREVIATIONS.values())
    dialect = reader.dialect
    needs_names = dialect is not None
    connection.execute(
        query("put_staged_zones"),
        {
            "abbreviations": list(ABBREVIATIONS),
            "zones": [zone for zone, _ in zones],
            "offset_seconds": [int(offset.total_seconds()) for _, offset in zones],
            "names": sorted(zone_names()) if needs_names else [],
        },
    )
    connection.execute(query("create_staged_exponent"), {"provider": account.provider})
    create_raw_rows(connection, reader.fields, reader.same_as)
    if dialect is not None:
        connection.execute(query("create_staged_dialect"))
        connection.execute(
            query("put_staged_dialect"),
            {
                "decimal_point": dialect.decimal,
                "thousands": dialect.thousands,
                "date_order": dialect.dates,
                "fee_factor": 1 if dialect.fee_sign == "cost_is_positive" else -1,
                "amount_factor": 1 if dialect.amount_sign == "as_written" else -1,
                "debit_words": [word.lower() for word in dialect.debit_words],
                "is_minor": dialect.minor_units,
                "currency_code": dialect.currency_code,
                "has_zone_column": dialect.occurred_zone is not None,
                "zone": reader.zone,
            },
        )
        connection.execute(query("create_csv_row"))
    connection.execute(query("create_staged_salt"), {"salt": _salt(account, reader.name)})
    connection.execute(query(reader.identity))
    connection.execute(query("analyze_words"))


def _salt(account: ProviderAccountConfig, format_name: str) -> int:
    """What the fingerprint of a row's text stands under: everything that decides its meaning."""
    settings = {**account.stored_settings(), "provider": account.provider, "zone": account.zone}
    settings["format"] = format_name
    for name in _MATCHING:
        settings.pop(name, None)
    text = json.dumps([_MEANING, settings], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class _Rows:
    """The raw rows of this run's files, on their way to becoming entries."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        reader: Format,
        name: str,
        files: tuple[ScannedFile, ...],
    ) -> None:
        self._connection = connection
        self._reader = reader
        self._values = {
            "provider_account": name,
            "has_control_characters": any(file.has_controls for file in files),
            "columns": Jsonb(dict(reader.columns)),
            "is_filtered": True,
        }
        self._names = ", ".join(file.name for file in files)
        self.last_run_id: int | None = None

    def lay_down(self) -> bool:
        """Make entries of the rows that differ from what is current; False: of all rows."""
        row = self._execute("read_last_run").fetchone()
        self.last_run_id = None if row is None else row[0]
        self._execute("list_candidates")
        self._execute("analyze_candidates")
        try:
            self._execute(self._reader.stage)
        except psycopg.DataError:
            self._examine_all()
        else:
            if self._execute("list_suspect_entries").rowcount:
                self._examine(drop="delete_rejected_entries")
        self._execute("reject_unreadable_entries")
        self._execute("analyze_laid_down")
        if self._execute("find_unlaid_siblings").fetchone() == (True,):
            self.lay_down_all()
        else:
            self._tell_apart()
        self._execute("count_file_rows")
        return bool(self._values["is_filtered"])

    def lay_down_all(self) -> None:
        """Make entries of all rows that were not rejected."""
        self._values["is_filtered"] = False
        for name in ("clear_candidates", "list_candidates", "clear_staged_entries"):
            self._execute(name)
        self._execute(self._reader.stage)
        self._tell_apart()

    def _examine_all(self) -> None:
        """The fast way broke off at a value: examine every row, then take the good ones."""
        self._execute("clear_staged_entries")
        self._execute("list_all_candidates")
        self._examine(drop="clear_staged_entries")
        try:
            self._execute(self._reader.stage)
        except psycopg.DataError as error:
            reason = describe(error)
            raise InputError(f"{self._names}: a row can't be read: {reason}") from None

    def _examine(self, *, drop: str) -> None:
        self._execute("drop_blank_rows")
        self._execute(self._reader.reject)
        self._execute(drop)
        self._execute("delete_rejected_raw_rows")

    def _tell_apart(self) -> None:
        if self._reader.stage == adyen.STAGE:
            self._execute("number_adyen_collisions")
            if self._execute("reject_ambiguous_entries").rowcount:
                self._execute("delete_rejected_raw_rows")

    def _execute(self, name: str) -> psycopg.Cursor[Any]:
        statement = query(name)
        return self._connection.execute(statement, self._values if "%(" in statement else None)


def _unknown_types(connection: psycopg.Connection[Any]) -> dict[str, int]:
    found = dict(connection.execute(query("list_unknown_types")).fetchall())
    for provider_type, count in found.items():
        log.warning("unknown row type is kept as other", type=provider_type, entries=count)
    return found


def stage_api(
    connection: psycopg.Connection[Any],
    name: str,
    account: ProviderAccountConfig,
    source: ApiSource,
    now: datetime,
    progress: Progress,
) -> Staged:
    """Lay down what the API says: since the cursor, and all that was pending or not complete.

    `now` is the database's clock. Raises UnavailableError when the provider is away.
    """
    values = {"provider_account": name}
    position = connection.execute(query("read_cursor"), values).fetchone()
    pending = [row[0] for row in connection.execute(query("list_pending_entries"), values)]
    batches = [row[0] for row in connection.execute(query("list_open_batches"), values)]
    start = None if position is None or position[0] is None else Cursor(position[0])
    pull = source.pull(
        cursor=start,
        pending_ids=pending,
        open_batches=batches,
        look_back=account.look_back,
        now=now,
    )
    _lay_down_pull(connection, pull, progress)
    return Staged(is_api=True, cursor=pull.cursor, unknown_types=_unknown_types(connection))


def stage_subjects(
    connection: psycopg.Connection[Any],
    name: str,
    source: ApiSource,
    subjects: Sequence[str],
    now: datetime,
    progress: Progress,
) -> Staged:
    """Lay down what the API says about these payments and payouts, and nothing else.

    `now` is the database's clock. Raises ConfigurationError for an API that can't be asked so,
    InputError for an id that it does not know, UnavailableError when it is away.
    """
    if not isinstance(source, SubjectSource):
        raise ConfigurationError(f"provider account {name} can't be asked about single payments")
    _lay_down_pull(connection, source.pull_subjects(subjects=subjects, now=now), progress)
    return Staged(is_api=True, unknown_types=_unknown_types(connection))


def _lay_down_pull(connection: psycopg.Connection[Any], pull: Pull, progress: Progress) -> None:
    connection.execute(
        query("put_staged_source"),
        {"source_no": API_SOURCE_NO, "name": "api", "sha256": None, "size_bytes": 0},
    )
    connection.execute(query("lift_time_limit"))
    with connection.cursor() as cursor, cursor.copy(query("copy_staged_entries")) as copy:
        for count, entry in enumerate(pull.entries, start=1):
            copy.write_row(
                (
                    API_SOURCE_NO,
                    entry.line_no,
                    entry.entry_id,
                    entry.entry_type,
                    entry.provider_type,
                    entry.batch_ref,
                    entry.payment_ref,
                    entry.provider_payment_ref,
                    entry.gross_minor,
                    entry.fee_minor,
                    entry.net_minor,
                    entry.currency,
                    entry.net_currency,
                    entry.entry_status,
                    entry.occurred_at,
                    entry.available_at,
                    entry.source_order,
                    "api",
                    Jsonb(dict(entry.body)) if entry.body else None,
                )
            )
            if count % _ENTRIES_PER_REPORT == 0:
                progress("entries", count, None)
    connection.execute(query("restore_time_limit"))
    _keep_api_facts(connection, pull)


def _keep_api_facts(connection: psycopg.Connection[Any], pull: Pull) -> None:
    connection.execute(
        query("put_staged_batches"),
        {
            "batch_refs": [batch.batch_ref for batch in pull.batches],
            "itemisable": [batch.is_itemisable for batch in pull.batches],
            "complete": [batch.is_complete for batch in pull.batches],
        },
    )
    if pull.rejects:
        with connection.cursor() as cursor, cursor.copy(query("copy_rejects")) as copy:
            for row in pull.rejects:
                copy.write_row(
                    (
                        API_SOURCE_NO,
                        row.position,
                        row.column,
                        row.value,
                        row.reason,
                        row.expected,
                        None,
                    )
                )
