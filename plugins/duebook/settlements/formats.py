"""Which kinds of file each provider has, and how each is recognised and read.

A file is known by its contents and never by its name. Every kind but Adyen's is read as a mapped
table: what differs is only where its columns come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from duebook.config import CsvColumns, ProviderAccountConfig
from duebook.errors import ConfigurationError
from duebook.settlements import (
    adyen,
    braintree,
    gocardless,
    json_lines,
    mapped_csv,
    paypal,
    square,
    stripe_report,
)
from duebook.settlements.delimited import (
    Layout,
    ScannedFile,
    UnknownLayoutError,
    scan_file,
    starts_with,
)

_NO_WORDS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file: how it is recognised, and the names of the statements that read its rows.

    `columns` is field to the file's own column, as an error names it. `dialect` says how a mapped
    file writes numbers and dates. `same_as` names fields that read the column of another.
    """

    name: str
    scan: Callable[[Path], ScannedFile]
    fields: tuple[str, ...]
    columns: Mapping[str, str]
    types: Mapping[str, str]
    stage: str
    reject: str
    body: str
    identity: str
    zone: str
    same_as: Mapping[str, str] = field(default_factory=lambda: _NO_WORDS)
    statuses: Mapping[str, str] = field(default_factory=lambda: _NO_WORDS)
    dialect: CsvColumns | None = None


def formats_of(account: ProviderAccountConfig) -> tuple[Format, ...]:
    """The kinds of file that this account may bring, the provider's own before mapped text.

    Raises ConfigurationError when it has none.
    """
    found = tuple(_formats(account))
    if not found:
        raise ConfigurationError(
            f"provider {account.provider} is read over its API, not from files"
        )
    return found


def _formats(account: ProviderAccountConfig) -> Iterator[Format]:
    if account.columns is not None and account.columns.header:
        # First, since it is known by its first bytes and no text to the others.
        yield _mapped_parquet(account, account.columns)
    own = _OWN.get(account.provider)
    if own is not None:
        yield from own(account)
    if account.columns is not None:
        yield _mapped_json(account, account.columns)
        yield _mapped(account, account.columns)


def recognise(path: Path, formats: Sequence[Format]) -> tuple[ScannedFile, Format]:
    """Look at a file, and which of these kinds it is.

    Raises InputError when it can't be read as a whole, or is none of them.
    """
    faults: list[UnknownLayoutError] = []
    for each in formats:
        try:
            return each.scan(path), each
        except UnknownLayoutError as fault:
            faults.append(fault)
    if all(each.dialect is formats[-1].dialect for each in formats):
        # One mapping: what it lacks in a table says more than that it is no JSON.
        raise faults[-1]
    looked_for = "; ".join(
        f"{each.name} ({str(fault).partition('; expected')[0].removeprefix(path.name)[2:]})"
        for each, fault in zip(formats, faults, strict=True)
    )
    raise UnknownLayoutError(f"{path.name}: none of the known formats: {looked_for}")


def _adyen(account: ProviderAccountConfig) -> Iterator[Format]:
    yield Format(
        name="Adyen settlement detail report",
        scan=partial(scan_file, layout=adyen.LAYOUT),
        fields=tuple(adyen.COLUMNS),
        columns=adyen.COLUMNS,
        types={**adyen.TYPES, **account.types},
        stage=adyen.STAGE,
        reject=adyen.REJECT,
        body=adyen.BODY,
        identity=adyen.IDENTITY,
        zone=account.zone,
    )


def _paypal(account: ProviderAccountConfig) -> Iterator[Format]:
    yield _table(
        "PayPal settlement report",
        paypal.scan_report,
        paypal.COLUMNS,
        {"type": "entry_id_2"},
        paypal.DIALECT,
        types={**paypal.TYPES, **account.types},
        zone=account.zone,
    )


def _stripe(account: ProviderAccountConfig) -> Iterator[Format]:
    for name, columns, zone in stripe_report.variants(account.reference, account.zone):
        mapped, same_as = mapped_csv.make_layout(columns.by_field(), columns.delimiter)
        required = mapped.required - stripe_report.OPTIONAL
        layout = Layout(stripe_report.WHAT, mapped.columns, required, mapped.delimiter)
        yield _table(
            name,
            partial(scan_file, layout=layout),
            columns.by_field(),
            same_as,
            columns,
            types={**stripe_report.TYPES, **account.types},
            zone=zone,
        )


def _gocardless(account: ProviderAccountConfig) -> Iterator[Format]:
    types = {**gocardless.TYPES, **account.types}
    yield _table(
        "GoCardless payout items (JSON)",
        gocardless.scan_items,
        gocardless.COLUMNS,
        _NO_WORDS,
        gocardless.DIALECT,
        types=types,
        zone=account.zone,
    )
    yield _table(
        "GoCardless payout transactions (CSV)",
        gocardless.scan_export,
        gocardless.EXPORT_COLUMNS,
        _NO_WORDS,
        gocardless.EXPORT_DIALECT,
        types=types,
        zone=account.zone,
    )


def _square(account: ProviderAccountConfig) -> Iterator[Format]:
    yield _table(
        "Square payout entries (JSON)",
        square.scan_entries,
        square.COLUMNS,
        _NO_WORDS,
        square.DIALECT,
        types={**square.TYPES, **account.types},
        zone=account.zone,
    )


def _braintree(account: ProviderAccountConfig) -> Iterator[Format]:
    for fee in braintree.FEES:
        yield _table(
            f"Braintree transaction-level fee report ({fee})",
            partial(braintree.scan_report, fee=fee),
            braintree.columns_of(fee),
            {"type": "entry_id_2"},
            braintree.dialect_of(fee),
            types={**braintree.TYPES, **account.types},
            zone=account.zone,
        )


_OWN: Final[Mapping[str, Callable[[ProviderAccountConfig], Iterator[Format]]]] = MappingProxyType(
    {
        "adyen": _adyen,
        "braintree": _braintree,
        "gocardless": _gocardless,
        "paypal": _paypal,
        "square": _square,
        "stripe": _stripe,
    }
)


def _mapped_parquet(account: ProviderAccountConfig, columns: CsvColumns) -> Format:
    read, same_as = mapped_csv.make_layout(columns.by_field(), columns.delimiter)
    return _table(
        "Parquet by the columns that duebook.toml maps",
        partial(_scan_parquet, columns=read.columns, decimal=columns.decimal),
        columns.by_field(),
        same_as,
        columns,
        types=account.types,
        statuses=account.statuses,
        zone=account.zone,
    )


def _scan_parquet(path: Path, columns: Mapping[str, str], decimal: str) -> ScannedFile:
    if not starts_with(path, b"PAR1"):
        raise UnknownLayoutError(f"{path.name}: is no Parquet; expected {mapped_csv.WHAT}")
    # Only now: importing Arrow takes 0.4 s, which no other command should wait for.
    from duebook.settlements.parquet import scan_parquet

    return scan_parquet(path, columns, decimal)


def _mapped_json(account: ProviderAccountConfig, columns: CsvColumns) -> Format:
    read, same_as = mapped_csv.make_layout(columns.by_field(), columns.delimiter)
    return _table(
        "JSON lines by the columns that duebook.toml maps",
        partial(json_lines.scan_lines, columns=read.columns),
        columns.by_field(),
        same_as,
        columns,
        types=account.types,
        statuses=account.statuses,
        zone=account.zone,
    )


def _mapped(account: ProviderAccountConfig, columns: CsvColumns) -> Format:
    layout, same_as = mapped_csv.make_layout(
        columns.by_field(), columns.delimiter, has_header=columns.header
    )
    return _table(
        "the columns that duebook.toml maps",
        partial(scan_file, layout=layout),
        columns.by_field(),
        same_as,
        columns,
        types=account.types,
        statuses=account.statuses,
        zone=account.zone,
    )


def _table(
    name: str,
    scan: Callable[[Path], ScannedFile],
    columns: Mapping[str, str],
    same_as: Mapping[str, str],
    dialect: CsvColumns,
    *,
    types: Mapping[str, str],
    zone: str,
    statuses: Mapping[str, str] = _NO_WORDS,
) -> Format:
    return Format(
        name=name,
        scan=scan,
        fields=mapped_csv.FIELDS,
        columns=columns,
        types=types,
        stage=mapped_csv.STAGE,
        reject=mapped_csv.REJECT,
        body=mapped_csv.BODY,
        identity=mapped_csv.IDENTITY,
        zone=zone,
        same_as=same_as,
        statuses=statuses,
        dialect=dialect,
    )
