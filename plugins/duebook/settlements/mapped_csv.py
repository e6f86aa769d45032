"""Any provider's CSV, by the column mapping of its account in duebook.toml."""

from __future__ import annotations

from typing import Final

from duebook.settlements.delimited import Layout

FIELDS: Final = (
    "entry_id_1",
    "entry_id_2",
    "entry_id_3",
    "type",
    "gross",
    "debit",
    "credit",
    "direction",
    "fee",
    "net",
    "currency",
    "net_currency",
    "payment_ref",
    "provider_payment_ref",
    "batch_ref",
    "occurred_at",
    "occurred_time",
    "occurred_zone",
    "updated_at",
    "status",
)

WHAT: Final = "the columns that duebook.toml maps"
STAGE: Final = "stage_csv"
REJECT: Final = "reject_csv"
BODY: Final = "create_csv_body"
IDENTITY: Final = "create_csv_identity"


def make_layout(
    columns: dict[str, str], delimiter: str, *, has_header: bool = True
) -> tuple[Layout, dict[str, str]]:
    """The layout of a mapped file, and which fields read the same column as an earlier field.

    `columns` is field to column. A column that several fields read is read once.
    """
    first: dict[str, str] = {}
    same_as: dict[str, str] = {}
    for field in FIELDS:
        column = columns.get(field)
        if column is None:
            continue
        key = column.strip().casefold()
        if key in first:
            same_as[field] = first[key]
        else:
            first[key] = field
    read = {field: columns[field] for field in first.values()}
    return Layout(WHAT, read, frozenset(read), delimiter, has_header), same_as
