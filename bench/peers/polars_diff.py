"""polars: the file and the ledger as two frames, scanned and joined on every core."""

from __future__ import annotations

import io

import polars as pl

from bench.peers import dataframe_write

_AMOUNTS = {"Gross": "gross_minor", "Fee": "fee_minor", "Net": "net_minor"}
_COMPARED = ("gross_minor", "fee_minor", "net_minor", "currency", "entry_status")


def diff(path: str, ledger_csv: io.BytesIO) -> tuple[bytes, int]:
    """The rows of the file that the ledger does not have or has otherwise, as CSV."""
    file = pl.scan_csv(path).select(
        pl.col("Entry").alias("entry_id"),
        # Exact: a double holds every amount of two decimals up to 15 digits.
        *((pl.col(name) * 100).round().cast(pl.Int64).alias(to) for name, to in _AMOUNTS.items()),
        pl.col("Currency").alias("currency"),
        pl.col("Status").alias("entry_status"),
    )
    ledger = pl.read_csv(ledger_csv).lazy()
    differs = [pl.col(name).ne_missing(pl.col(f"{name}_ledger")) for name in _COMPARED]
    changed = (
        file.join(ledger, on="entry_id", how="left", suffix="_ledger")
        .filter(pl.any_horizontal(differs))
        .select("entry_id", *_COMPARED)
        .collect(engine="streaming")
    )
    return changed.write_csv(include_header=False).encode(), changed.height


if __name__ == "__main__":
    dataframe_write.run(diff)
