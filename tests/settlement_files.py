"""Makes settlement and ledger files for tests, and runs reconciliations on them."""

from __future__ import annotations

import csv
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from duebook.config import Config, load_config, parse_config
from duebook.db.connect import connect_url
from duebook.services.apply import apply_config
from duebook.services.imports import ImportReport, import_ledger
from duebook.services.reconcile import ReconcileReport, ReconcileRequest, SourceFactory, reconcile

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "settlements"

ADYEN_HEADER = (
    "Company Account,Merchant Account,Psp Reference,Merchant Reference,Payment Method,"
    "Creation Date,TimeZone,Type,Modification Reference,Gross Currency,Gross Debit (GC),"
    "Gross Credit (GC),Exchange Rate,Net Currency,Net Debit (NC),Net Credit (NC),"
    "Commission (NC),Markup (NC),Scheme Fees (NC),Interchange (NC),Payment Method Variant,"
    "Modification Merchant Reference,Batch Number,Reserved4,Reserved5,Reserved6,Reserved7,"
    "Reserved8,Reserved9,Reserved10"
).split(",")
LEDGER_HEADER = (
    "account_id,payment_id,reference,amount_minor,currency,status,expected_at,provider_account,void"
).split(",")


def shared_file(*parts: str) -> Path:
    """A file of real provider input; the test is skipped where it is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    return path


def adyen_row(
    kind: str,
    amount: str,
    *,
    psp: str = "",
    reference: str = "",
    modification: str = "",
    batch: int = 1,
    fee: str = "",
    net: str | None = None,
    currency: str = "EUR",
    net_currency: str | None = None,
    created: str = "2026-03-01 10:00:00",
    zone: str = "CET",
    note: str = "",
) -> dict[str, str]:
    """One row; a negative amount is a debit. Without a net the fee is taken off the amount."""
    if net is None:
        cents = round(float(amount) * 100) - round(float(fee or 0) * 100)
        net = f"{cents / 100:.2f}"
    return {
        "Psp Reference": psp,
        "Merchant Reference": reference,
        "Creation Date": created,
        "TimeZone": zone,
        "Type": kind,
        "Modification Reference": modification or f"{kind} of {psp}",
        "Gross Currency": currency if psp else "",
        "Gross Debit (GC)": amount.lstrip("-") if psp and amount.startswith("-") else "",
        "Gross Credit (GC)": amount if psp and not amount.startswith("-") else "",
        "Net Currency": net_currency or currency,
        "Net Debit (NC)": net.lstrip("-") if net.startswith("-") else "",
        "Net Credit (NC)": "" if net.startswith("-") else net,
        "Commission (NC)": fee,
        "Modification Merchant Reference": note,
        "Batch Number": str(batch),
    }


def settled(number: int, amount: str, **others: Any) -> dict[str, str]:
    """A captured payment, its references made of a number."""
    return adyen_row("Settled", amount, psp=f"PSP{number}", reference=f"REF{number}", **others)


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Mapping[str, str]]) -> Path:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, header, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def booked(
    number: int,
    amount_minor: int,
    *,
    account: str = "acme",
    status: str = "paid",
    currency: str = "EUR",
    expected_at: str = "2026-03-02",
    provider_account: str = "adyen",
    reference: str | None = None,
    void: str = "",
) -> dict[str, str]:
    """One booked payment, its references made of a number."""
    return {
        "account_id": account,
        "payment_id": f"pay{number}",
        "reference": reference or f"REF{number}",
        "amount_minor": str(amount_minor),
        "currency": currency,
        "status": status,
        "expected_at": expected_at,
        "provider_account": provider_account,
        "void": void,
    }


def no_source(name: str, account: Any) -> Any:
    """A source factory for accounts that are read from files."""
    raise AssertionError(f"{name} ({account.provider}) was asked over an API")


@dataclasses.dataclass(slots=True)
class World:
    """One database, its configuration and a folder for files."""

    url: str
    folder: Path
    config: Config
    source: SourceFactory = no_source
    _files: int = 0

    @property
    def connect(self) -> Callable[[], psycopg.Connection[Any]]:
        return functools.partial(connect_url, self.url, autocommit=True)

    def adyen(self, *rows: Mapping[str, str], name: str | None = None) -> Path:
        """An Adyen file of these rows."""
        return write_rows(self._next(name), ADYEN_HEADER, rows)

    def book(self, *rows: Mapping[str, str]) -> ImportReport:
        """Import these booked payments."""
        path = write_rows(self._next(None), LEDGER_HEADER, rows)
        return import_ledger(self.connect, path, self.config)

    def text(self, content: str | bytes, name: str | None = None) -> Path:
        """A file of this content."""
        path = self._next(name)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def _next(self, name: str | None) -> Path:
        self._files += 1
        return self.folder / (name or f"file{self._files}.csv")

    def reconcile(
        self,
        *files: Path,
        account: str = "adyen",
        as_of: datetime | None = None,
        dry_run: bool = False,
        scope: Any = "full",
    ) -> ReconcileReport:
        """One run."""
        request = ReconcileRequest(account, files, as_of, dry_run, scope, "pytest")
        return reconcile(self.connect, request, self.config, self.source)

    def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        """What a query returns."""
        with self.connect() as connection, connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(statement.encode(), values or None).fetchall()

    def value(self, statement: str, *values: Any) -> Any:
        """The one value that a query returns."""
        return next(iter(self.rows(statement, *values)[0].values()))

    def go_live(self, notify_from: str = "2020-01-01T00:00:00Z", *accounts: str) -> None:
        """Send for these provider accounts (adyen) from now on."""
        changed = {
            name: {**plain(account), "mode": "live", "notify_from": notify_from}
            for name, account in self.config.provider_accounts.items()
            if name in (accounts or ("adyen",))
        }
        self.configure(provider_accounts=changed)

    def configure(self, **sections: Mapping[str, Any]) -> None:
        """Replace entries of sections of the configuration, and apply it."""
        document = plain(self.config)
        for section, entries in sections.items():
            document[section] = {**document[section], **entries}
        self.config = parse_config(document, "duebook.toml")
        apply_config(self.connect, self.config, by="pytest")


def plain(model: Any) -> dict[str, Any]:
    """A configuration model as the document it was read from."""
    document: dict[str, Any] = model.model_dump(by_alias=True)
    return document


def make_world(url: str, folder: Path) -> World:
    """A world of the shipped configuration, nothing applied yet; it is never quiet there."""
    return World(url, folder, load_config().model_copy(update={"quiet_hours": ()}))
