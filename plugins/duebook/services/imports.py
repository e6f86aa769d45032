"""Takes the booked side and the contacts from CSV: incremental, idempotent, every bad row named.

A bad row goes to quarantine with file, line, column, value, reason and what was expected; the good
rows go on. An import writes what is booked and nothing else: it never undoes evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import psycopg
import psycopg.rows
import structlog

from duebook.config import Config, load_config, zone_names
from duebook.db.connect import Connect, describe, is_away, unavailable
from duebook.db.sql import query
from duebook.errors import InputError
from duebook.services.raw_rows import copy_file, create_raw_rows
from duebook.settlements.delimited import Layout, ScannedFile, scan_file

log = structlog.get_logger(__name__)

_LEDGER_COLUMNS: Final = (
    "account_id",
    "payment_id",
    "reference",
    "amount_minor",
    "amount",
    "currency",
    "status",
    "expected_at",
    "provider_account",
    "void",
    "group_reference",
)
_LEDGER_OPTIONAL: Final = frozenset(
    {"amount_minor", "amount", "provider_account", "void", "group_reference"}
)
_CONTACT_COLUMNS: Final = ("account_id", "channel", "address", "zone", "locale", "region")
_CONTACT_OPTIONAL: Final = frozenset({"locale", "region"})
_SEND_COLUMNS: Final = (
    "id",
    "account_id",
    "sent_at",
    "operation_key",
    "kind",
    "channel",
    "payment_id",
)
_SEND_REQUIRED: Final = frozenset({"id", "account_id", "sent_at"})


@dataclass(frozen=True, slots=True)
class RowFault:
    """One row that could not be read. The value may be personal: for a terminal, never a log."""

    line_no: int
    column: str | None
    value: str | None
    reason: str
    expected: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did; `faults` are the first hundred rows in quarantine."""

    file: str
    added: int
    changed: int
    unchanged: int
    quarantined: int
    faults: tuple[RowFault, ...]

    @property
    def exit_code(self) -> int:
        """1 when a row is in quarantine, else 0."""
        return int(self.quarantined > 0)

    def to_json(self) -> dict[str, Any]:
        """The document of `duebook ledger import --json` and `duebook contacts import --json`."""
        return {
            "file": self.file,
            "new": self.added,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "quarantined": self.quarantined,
            "faults": [
                {
                    "file": self.file,
                    "line": fault.line_no,
                    "column": fault.column,
                    "value": fault.value,
                    "reason": fault.reason,
                    "expected": fault.expected,
                }
                for fault in self.faults
            ],
        }


def import_ledger(
    connect: Connect,
    path: Path,
    config: Config | None = None,
    *,
    until: datetime | None = None,
    complete_for: Sequence[str] = (),
) -> ImportReport:
    """Book the payments of a CSV file; `config` (default: the shipped one) knows the accounts.

    `until`: the books are complete up to then, for the provider accounts `complete_for` (default:
    all). What a provider settles from then on is not missing in them yet.

    Columns: account_id, payment_id, reference, amount_minor or amount (major units, exact),
    currency, status, expected_at (UTC without an offset), optionally provider_account, void and
    group_reference; a payment that names no provider account is routed. Raises InputError when the
    file can't be read as a whole, UnavailableError when the database is away.
    """
    columns = {name: name for name in _LEDGER_COLUMNS}
    what = (
        "account_id, payment_id, reference, amount_minor or amount, currency, status, expected_at"
    )
    layout = Layout(what, columns, frozenset(columns) - _LEDGER_OPTIONAL)
    file = scan_file(path, layout)
    if not {"amount", "amount_minor"} & set(file.fields):
        raise InputError(
            f"{file.name}, line {file.header_line}: column 'amount_minor' is missing; "
            f"expected {what}"
        )
    with database_errors(), connect() as connection:
        return _import_ledger(connection, file, config or load_config(), until, complete_for)


def import_contacts(connect: Connect, path: Path) -> ImportReport:
    """Take the contacts of a CSV file.

    Columns: account_id, channel, address, zone (IANA), optionally locale (en) and region. Raises
    InputError when the file can't be read as a whole, UnavailableError when the database is away.
    """
    columns = {name: name for name in _CONTACT_COLUMNS}
    what = "account_id, channel, address, zone"
    file = scan_file(path, Layout(what, columns, frozenset(columns) - _CONTACT_OPTIONAL))
    with database_errors(), connect() as connection:
        return _import_contacts(connection, file)


def import_sends(connect: Connect, path: Path, sender: str, source: str = "file") -> ImportReport:
    """Take what an old sender says that it sent, from its log as CSV; what is known stays.

    Columns: id (its own), account_id, sent_at (with an offset), and operation_key or kind and
    payment_id; optionally channel. Raises InputError when the file can't be read as a whole or the
    sender is not known, UnavailableError when the database is away.
    """
    columns = {name: name for name in _SEND_COLUMNS}
    what = "id, account_id, sent_at, operation_key (or kind and payment_id)"
    file = scan_file(path, Layout(what, columns, _SEND_REQUIRED))
    with database_errors(), connect() as connection:
        known = connection.execute(query("has_old_sender"), {"sender": sender}).fetchone()
        if known is None or not known[0]:
            raise InputError(f"unknown old sender {sender}: state [old_senders.{sender}]")
        connection.execute(query("create_staged_send"))
        _lay_down(connection, file, _SEND_COLUMNS)
        connection.execute(query("list_all_rows"))
        connection.execute(query("drop_blank_rows"))
        connection.execute(query("reject_sends"))
        connection.execute(query("delete_rejected_raw_rows"))
        connection.execute(query("stage_sends"))
        with connection.transaction():
            _quarantine(connection, "sends", file)
            values = {"sender": sender, "source": source}
            return _report(connection, file, "write_sends", values)


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn a database that went away into the error a user is told."""
    try:
        yield
    except psycopg.Error as error:
        if is_away(error):
            raise unavailable(error) from error
        raise


def _import_ledger(
    connection: psycopg.Connection[Any],
    file: ScannedFile,
    config: Config,
    until: datetime | None,
    complete_for: Sequence[str],
) -> ImportReport:
    for name in (
        "set_temp_buffers",
        "create_staged_booking",
        "create_changed_booking",
        "create_routing_rule",
        "create_known_account",
        "create_import_exponent",
    ):
        connection.execute(query(name))
    _enter_rules(connection, config)
    _lay_down(connection, file, _LEDGER_COLUMNS)
    connection.execute(query("create_booking_row"))
    connection.execute(query("analyze_rules"))
    _stage_bookings(connection, file)
    connection.execute(query("drop_repeated_bookings"))
    values = {
        "has_provider_account": "provider_account" in file.fields,
        "has_void": "void" in file.fields,
        "has_group_reference": "group_reference" in file.fields,
    }
    with connection.transaction():
        _quarantine(connection, "ledger", file)
        connection.execute(query("compare_bookings"), values)
        connection.execute(query("retire_references"))
        connection.execute(query("write_bookings"))
        if until is not None:
            _set_books_until(connection, until, complete_for)
    return _report(connection, file, "count_bookings")


def _set_books_until(
    connection: psycopg.Connection[Any], until: datetime, accounts: Sequence[str]
) -> None:
    stated = {"books_until": until, "provider_accounts": list(accounts) or None}
    found = {row[0] for row in connection.execute(query("set_books_until"), stated)}
    unknown = sorted(set(accounts) - found)
    if unknown:
        raise InputError(f"--account {unknown[0]}: no provider account of that name was applied")


def _enter_rules(connection: psycopg.Connection[Any], config: Config) -> None:
    rules = config.routing.rules
    default = [config.routing.default] if config.routing.default else []
    connection.execute(
        query("put_routing_rules"),
        {
            "accounts": [rule.provider_account for rule in rules] + default,
            "prefixes": [rule.reference_prefix or "" for rule in rules] + ["" for _ in default],
            "currencies": [rule.currency for rule in rules] + [None for _ in default],
        },
    )
    accounts = config.provider_accounts
    connection.execute(
        query("put_known_accounts"),
        {
            "accounts": list(accounts),
            "providers": [account.provider for account in accounts.values()],
        },
    )


def _lay_down(
    connection: psycopg.Connection[Any], file: ScannedFile, fields: tuple[str, ...]
) -> None:
    connection.execute(query("create_staged_reject"))
    connection.execute(query("create_suspect_row"))
    create_raw_rows(connection, fields, {})
    copy_file(connection, 1, file)


def _stage_bookings(connection: psycopg.Connection[Any], file: ScannedFile) -> None:
    """Type the rows; those that look odd are examined one by one."""
    try:
        connection.execute(query("stage_bookings"))
    except psycopg.DataError:
        _stage_examined(connection, file)
    else:
        if connection.execute(query("list_suspect_bookings")).rowcount:
            connection.execute(query("drop_blank_rows"))
            connection.execute(query("reject_bookings"))
            connection.execute(query("delete_rejected_bookings"))
    connection.execute(query("reject_unreadable_bookings"))


def _stage_examined(connection: psycopg.Connection[Any], file: ScannedFile) -> None:
    """The fast way broke off at a value: examine every row, then take the good ones."""
    connection.execute(query("clear_staged_bookings"))
    connection.execute(query("list_all_rows"))
    connection.execute(query("drop_blank_rows"))
    connection.execute(query("reject_bookings"))
    connection.execute(query("delete_rejected_raw_rows"))
    try:
        connection.execute(query("stage_bookings"))
    except psycopg.DataError as error:
        raise InputError(f"{file.name}: a row can't be read: {describe(error)}") from None


def _import_contacts(connection: psycopg.Connection[Any], file: ScannedFile) -> ImportReport:
    connection.execute(query("create_staged_contact"))
    connection.execute(query("create_known_zone"))
    connection.execute(query("put_known_zones"), {"zones": sorted(zone_names())})
    _lay_down(connection, file, _CONTACT_COLUMNS)
    connection.execute(query("list_all_rows"))
    connection.execute(query("drop_blank_rows"))
    connection.execute(query("reject_contacts"))
    connection.execute(query("delete_rejected_raw_rows"))
    connection.execute(query("stage_contacts"))
    with connection.transaction():
        _quarantine(connection, "contacts", file)
        return _report(connection, file, "write_contacts")


def _quarantine(connection: psycopg.Connection[Any], kind: str, file: ScannedFile) -> None:
    connection.execute(
        query("quarantine_import_rows"),
        {"source_kind": kind, "sha256": file.sha256, "file_name": file.name},
    )


def _report(
    connection: psycopg.Connection[Any],
    file: ScannedFile,
    counting: str,
    values: Mapping[str, Any] | None = None,
) -> ImportReport:
    with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        counts = cursor.execute(query(counting), values).fetchone()
        rejects = cursor.execute(query("count_rejects")).fetchone()
        faults = cursor.execute(query("list_import_faults")).fetchall()
    assert counts is not None, "a count returns one row"
    assert rejects is not None, "a count returns one row"
    report = ImportReport(
        file=file.name,
        added=counts["added"],
        changed=counts["changed"],
        unchanged=counts["told"] - counts["added"] - counts["changed"],
        quarantined=rejects["quarantined"],
        faults=tuple(
            RowFault(
                line_no=fault["line_no"],
                column=fault["column_name"],
                value=fault["value"],
                reason=fault["reason"],
                expected=fault["expected"],
            )
            for fault in faults
        ),
    )
    log.info(
        "imported",
        file=report.file,
        new=report.added,
        changed=report.changed,
        unchanged=report.unchanged,
        quarantined=report.quarantined,
    )
    return report
