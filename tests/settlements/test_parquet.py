"""Parquet by a mapping: exact, in batches, and floats refused."""

from __future__ import annotations

import datetime as dt
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duebook.errors import InputError
from duebook.settlements.delimited import DataRow, ScannedFile
from duebook.settlements.parquet import scan_parquet
from tests.settlement_files import World, make_world

COLUMNS = {"entry_id_1": "Id", "gross": "Amount", "occurred_at": "When"}


def write(path: Path, columns: dict[str, Any], **others: Any) -> Path:
    pq.write_table(pa.table(columns), path, **others)
    return path


def cells(file: ScannedFile) -> list[list[str | None]]:
    assert file.read is not None
    made = list(file.read(file))
    assert [row.line_no for row in made] == list(range(1, len(made) + 1))
    return [list(row.cells) for row in made if isinstance(row, DataRow)]


def scan(path: Path, decimal: str = ".", columns: dict[str, str] | None = None) -> ScannedFile:
    return scan_parquet(path, columns or COLUMNS, decimal)


def table(amounts: pa.Array, when: pa.Array | None = None) -> dict[str, Any]:
    count = len(amounts)
    return {
        "When": when if when is not None else pa.array(["2026-03-02"] * count),
        "id": pa.array([f"e{number}" for number in range(count)]),
        "amount": amounts,
    }


@pytest.mark.parametrize(
    ("amounts", "decimal", "texts"),
    [
        (pa.array([Decimal("-0.10"), None], pa.decimal128(38, 2)), ".", ["-0.10", None]),
        (pa.array([Decimal("0.10")], pa.decimal128(9, 2)), ",", ["0,10"]),
        (pa.array([Decimal("99999999999999999.99")], pa.decimal256(60, 2)), ".", None),
        (pa.array([Decimal("0.00000001")], pa.decimal128(20, 8)), ".", ["0.00000001"]),
        (pa.array([9007199254740993], pa.int64()), ".", ["9007199254740993"]),
        (pa.array([2**64 - 1], pa.uint64()), ".", ["18446744073709551615"]),
        (pa.array(["12.30", ""], pa.large_string()), ".", ["12.30", None]),
        (pa.array(["1", "1"]).dictionary_encode(), ".", ["1", "1"]),
        (pa.nulls(1), ".", [None]),
    ],
)
def test_numbers_stay_exactly_what_they_are(
    tmp_path: Path, amounts: pa.Array, decimal: str, texts: list[str | None] | None
) -> None:
    found = cells(scan(write(tmp_path / "a.parquet", table(amounts)), decimal))
    assert [row[1] for row in found] == (texts or ["99999999999999999.99"])


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_a_float_is_refused_by_name(tmp_path: Path, kind: pa.DataType) -> None:
    path = write(tmp_path / "a.parquet", table(pa.array([1.5], pa.float64()).cast(kind)))
    with pytest.raises(InputError, match=r"^a\.parquet: column 'Amount' is a float .*decimal"):
        scan(path)


def test_an_identity_that_became_a_float_is_refused_too(tmp_path: Path) -> None:
    columns = {**table(pa.array([1])), "id": pa.array([8.8e15])}
    with pytest.raises(InputError, match="column 'Id' is a float"):
        scan(write(tmp_path / "a.parquet", columns))


def test_a_float_that_nobody_maps_is_no_matter(tmp_path: Path) -> None:
    columns = {**table(pa.array([1])), "score": pa.array([0.5])}
    assert cells(scan(write(tmp_path / "a.parquet", columns))) == [["e0", "1", "2026-03-02"]]


@pytest.mark.parametrize(
    ("when", "text"),
    [
        (pa.array([dt.date(2026, 3, 2)]), "2026-03-02"),
        (pa.array([1772445601], pa.timestamp("s")), "2026-03-02 10:00:01"),
        (
            pa.array([1772445601123456789], pa.timestamp("ns", "Europe/Amsterdam")),
            "2026-03-02 11:00:01.123456+01:00",
        ),
        (pa.array([dt.time(10, 0, 1)]), "10:00:01"),
        (pa.array([36001000000001], pa.time64("ns")), "10:00:01"),
        (pa.array(["02.03.2026"]), "02.03.2026"),
    ],
)
def test_times_are_text_that_can_be_read(tmp_path: Path, when: pa.Array, text: str) -> None:
    path = write(tmp_path / "a.parquet", table(pa.array([1]), when))
    assert cells(scan(path))[0][2] == text


def test_a_path_leads_into_a_struct(tmp_path: Path) -> None:
    money = pa.array([{"value": Decimal("1.20")}, None], pa.struct({"value": pa.decimal128(9, 2)}))
    path = write(tmp_path / "a.parquet", {**table(pa.array([1, 2])), "money": money})
    found = cells(scan(path, columns={**COLUMNS, "gross": "money.value"}))
    assert [row[1] for row in found] == ["1.20", None]
    with pytest.raises(InputError, match=r"column 'money\.none' is missing"):
        scan(path, columns={**COLUMNS, "gross": "money.none"})


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.binary()])
def test_what_is_no_cell_is_refused(tmp_path: Path, kind: pa.DataType) -> None:
    path = write(tmp_path / "a.parquet", table(pa.nulls(1, kind)))
    with pytest.raises(InputError, match="expected text, a number or a date"):
        scan(path)


def test_a_damaged_file_is_refused_and_applies_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", table(pa.array(range(1000)).cast(pa.string())))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"^a\.parquet: Parquet that can't be read"):
        scan(path)
    path.write_bytes(whole[:4] + bytes(len(whole) - 1000) + whole[-996:])
    file = scan(path)
    with pytest.raises(InputError, match=r"^a\.parquet, after row \d+: Parquet that can't be read"):
        cells(file)


def test_a_file_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", table(pa.array([1])))
    file = scan(path)
    write(path, table(pa.array([1, 2])))
    with pytest.raises(InputError, match="the file changed while it was read"):
        cells(file)


def test_memory_follows_a_batch_and_not_the_file(tmp_path: Path) -> None:
    """One row group of 600,000 rows: read whole, it is over 100 MB of Python text."""
    count = 600_000
    amounts = pa.array(range(count), pa.int64()).cast(pa.decimal128(30, 2))
    path = write(tmp_path / "a.parquet", table(amounts), row_group_size=count)
    file = scan(path)
    assert file.read is not None
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        arrow = 0
        for row in file.read(file):
            if row.line_no % 50_000 == 0:
                arrow = max(arrow, pa.total_allocated_bytes() - before)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    assert arrow < 40_000_000


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> World:
    return make_world(database_url, tmp_path)


def test_decimals_are_reconciled_to_the_cent_by_a_mapping_with_commas(world: World) -> None:
    """Typed columns need no notation; the mapping's is for text."""
    settings = {
        "provider": "csv",
        "mode": "dry_run",
        "settle_within": "P3D",
        "zone": "Europe/Amsterdam",
        "columns": {
            "entry_id": "id",
            "amount": "amount",
            "currency_code": "EUR",
            "occurred_at": "When",
            "decimal": ",",
            "thousands": ".",
            "dates": "day_first",
        },
    }
    world.configure(provider_accounts={"lake": settings})
    amounts = [Decimal("1058.00"), Decimal("-0.01"), Decimal("123456.78")]
    when = pa.array([1772445600] * 3, pa.timestamp("s"))
    path = world.folder / "lake.bin"
    write(path, table(pa.array(amounts, pa.decimal128(18, 4)), when))
    report = world.reconcile(path, account="lake")
    assert report.quarantined == 0
    found = world.rows("select gross_minor, occurred_at from duebook.settlement_entry order by 1")
    assert [row["gross_minor"] for row in found] == [-1, 105800, 12345678]
    assert {row["occurred_at"] for row in found} == {
        dt.datetime(2026, 3, 2, 9, tzinfo=dt.UTC),
    }
