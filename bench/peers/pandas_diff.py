"""pandas: the file, the entries and the books as frames, joined in memory."""

from __future__ import annotations

import io

import pandas as pd

from bench.peers import dataframe_write
from bench.peers.dataframe_write import AMOUNTS, COMPARED, NAMES, Difference

# Few different values: compared by a small number instead of a string a row.
_CATEGORIES = ("provider_type", "batch_ref", "currency", "occurred", "entry_status")
_READ_AS = {column: "category" for column, name in NAMES.items() if name in _CATEGORIES}


def diff(path: str, entries_csv: io.BytesIO, books_csv: io.BytesIO) -> Difference:
    """What changed since last night, and how much of tonight agrees with the books."""
    file = pd.read_csv(path, dtype=_READ_AS)[list(NAMES)].rename(columns=NAMES)
    for column in AMOUNTS:
        # Exact: a double holds every amount of two decimals up to 15 digits.
        file[column] = (file[column] * 100).round().astype("int64")
    entries = pd.read_csv(entries_csv, dtype=dict.fromkeys(_CATEGORIES, "category"))
    for column in _CATEGORIES:
        known = file[column].cat.categories.union(entries[column].cat.categories)
        file[column] = file[column].cat.set_categories(known)
        entries[column] = entries[column].cat.set_categories(known)
    both = file.merge(entries, on="entry_id", how="left", suffixes=("", "_before"), indicator=True)
    differs = both["_merge"] == "left_only"
    for column in COMPARED:
        differs |= both[column] != both[f"{column}_before"]
    changed = both.loc[differs, list(NAMES.values())]

    books = pd.read_csv(books_csv, dtype={"booked_currency": "category"})
    known = file["currency"].cat.categories.union(books["booked_currency"].cat.categories)
    file["currency"] = file["currency"].cat.set_categories(known)
    books["booked_currency"] = books["booked_currency"].cat.set_categories(known)
    booked = file[["payment_ref", "gross_minor", "currency"]].merge(books, on="payment_ref")
    agrees = booked["gross_minor"] == booked["amount_minor"]
    matched = int((agrees & (booked["currency"] == booked["booked_currency"])).sum())
    return Difference(changed.to_csv(index=False, header=False).encode(), len(changed), matched)


if __name__ == "__main__":
    dataframe_write.run(diff)
