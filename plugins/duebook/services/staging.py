"""Lays down what a source says in temporary tables, before anything is compared or locked.

Files go in as text by COPY with their line numbers and are validated in SQL; an API's entries go in
by COPY as they arrive. Memory stays flat at any size. Nothing here outlives the session.
"""

from __future__ import annotations

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
from duebook.services.raw_rows import copy_file, create_raw_rows, enter_source
from duebook.settlements import adyen, mapped_csv
from duebook.settlements.base import ApiSource, Cursor, Pull
from duebook.settlements.delimited import Layout, ScannedFile, scan_file
from duebook.settlements.zones import ABBREVIATIONS

log = structlog.get_logger(__name__)

Progress = Callable[[str, int, int | None], None]
"""Called with the stage, how much of it is done, and of how much (None where nobody knows)."""

API_SOURCE_NO: Final = 0
_ENTRIES_PER_REPORT: Final = 1000
_TABLES: Final = (
    "create_staged_entry",
    "create_staged_source",
    "create_staged_reject",
    "create_suspect_row",
    "create_staged_type",
    "create_staged_status",
    "create_staged_zone",
    "create_staged_batch",
)


@dataclass(frozen=True, slots=True)
class Reader:
    """How the files of one provider are read: their layout and the names of the statements."""

    layout: Layout
    fields: tuple[str, ...]
    same_as: Mapping[str, str]
    types: Mapping[str, str]
    stage: str
    reject: str
    body: str
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Staged:
    """What was laid down: checksums known before, the statement of bodies, an API's new cursor."""

    known: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    body: str = "create_empty_body"
    cursor: Cursor | None = None
    unknown_types: Mapping[str, int] = field(default_factory=dict)


def reader_of(account: ProviderAccountConfig) -> Reader:
    """How this account's files are read. Raises ConfigurationError when it has none."""
    if account.provider == "adyen":
        return Reader(
            layout=adyen.LAYOUT,
            fields=tuple(adyen.COLUMNS),
            same_as={},
            types={**adyen.TYPES, **account.types},
            stage=adyen.STAGE,
            reject=adyen.REJECT,
            body=adyen.BODY,
            columns=adyen.COLUMNS,
        )
    if account.provider == "csv" and account.columns is not None:
        columns = account.columns.by_field()
        layout, same_as = mapped_csv.make_layout(columns, account.columns.delimiter)
        return Reader(
            layout=layout,
            fields=mapped_csv.FIELDS,
            same_as=same_as,
            types=account.types,
            stage=mapped_csv.STAGE,
            reject=mapped_csv.REJECT,
            body=mapped_csv.BODY,
            columns=columns,
        )
    raise ConfigurationError(f"provider {account.provider} is read over its API, not from files")


def prepare(connection: psycopg.Connection[Any]) -> None:
    """Make the tables that a source fills; once a session."""
    connection.execute(query("set_temp_buffers"))
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

    All of them are looked at first. Raises InputError when one can't be read as a whole.
    """
    reader = reader_of(account)
    scanned = [scan_file(path, reader.layout) for path in paths]
    checksums = [file.sha256 for file in scanned]
    values = {"provider_account": name, "checksums": checksums}
    known = {row[0] for row in connection.execute(query("find_known_files"), values)}
    new: dict[str, ScannedFile] = {}
    for file in scanned:
        if file.sha256 not in known:
            new.setdefault(file.sha256, file)
    if new:
        _prepare_reader(connection, account, reader)
        for number, file in enumerate(new.values(), start=1):
            progress("files", number - 1, len(new))
            enter_source(connection, number, file)
            copy_file(connection, number, file)
        progress("files", len(new), len(new))
        _stage_rows(connection, reader, ", ".join(file.name for file in new.values()))
    repeated = [file.sha256 for file in scanned if file.sha256 not in known]
    for checksum in new:
        repeated.remove(checksum)
    return Staged(
        known=tuple(checksum for checksum in checksums if checksum in known),
        repeated=tuple(repeated),
        body=reader.body if new else "create_empty_body",
        unknown_types=_unknown_types(connection) if new else {},
    )


def _prepare_reader(
    connection: psycopg.Connection[Any], account: ProviderAccountConfig, reader: Reader
) -> None:
    connection.execute(
        query("put_staged_types"),
        {"words": list(reader.types), "meanings": list(reader.types.values())},
    )
    connection.execute(
        query("put_staged_statuses"),
        {"words": list(account.statuses), "meanings": list(account.statuses.values())},
    )
    zones = list(ABBREVIATIONS.values())
    needs_names = account.columns is not None
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
    if account.columns is not None:
        connection.execute(query("create_staged_dialect"))
        connection.execute(
            query("put_staged_dialect"),
            {
                "decimal_point": account.columns.decimal,
                "thousands": account.columns.thousands,
                "date_order": account.columns.dates,
                "fee_factor": 1 if account.columns.fee_sign == "cost_is_positive" else -1,
                "has_zone_column": account.columns.occurred_zone is not None,
                "zone": account.zone,
            },
        )
        connection.execute(query("create_csv_row"))


def _stage_rows(connection: psycopg.Connection[Any], reader: Reader, names: str) -> None:
    """Make entries of the raw rows; rows that look odd are examined one by one."""
    values = {"columns": Jsonb(dict(reader.columns))} if reader.reject == mapped_csv.REJECT else None
    try:
        connection.execute(query(reader.stage))
    except psycopg.DataError:
        _stage_examined(connection, reader, names, values)
    else:
        if connection.execute(query("list_suspect_entries")).rowcount:
            connection.execute(query("drop_blank_rows"))
            connection.execute(query(reader.reject), values)
            connection.execute(query("delete_rejected_entries"))
    connection.execute(query("reject_unreadable_entries"))
    if reader.stage == adyen.STAGE:
        connection.execute(query("number_adyen_collisions"))
        connection.execute(query("reject_ambiguous_entries"))
    connection.execute(query("count_staged_sources"))


def _stage_examined(
    connection: psycopg.Connection[Any], reader: Reader, names: str, values: Any
) -> None:
    """The fast way broke off at a value: examine every row, then make entries of the good ones."""
    connection.execute(query("clear_staged_entries"))
    connection.execute(query("list_all_rows"))
    connection.execute(query("drop_blank_rows"))
    connection.execute(query(reader.reject), values)
    connection.execute(query("delete_rejected_raw_rows"))
    try:
        connection.execute(query(reader.stage))
    except psycopg.DataError as error:
        raise InputError(f"{names}: a row can't be read: {describe(error)}") from None


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
    connection.execute(
        query("put_staged_source"),
        {"source_no": API_SOURCE_NO, "name": "api", "sha256": None, "size_bytes": 0},
    )
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
    _keep_api_facts(connection, pull)
    return Staged(cursor=pull.cursor, unknown_types=_unknown_types(connection))


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
    connection.execute(query("count_staged_sources"))


