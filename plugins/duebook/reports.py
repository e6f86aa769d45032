"""The reports of schema `duebook_reports`, for notebooks and programs.

`read_report(url, name)` gives a pandas frame in which money stays exact: minor units are `Int64`,
major units `decimal.Decimal`, instants `datetime64[us, UTC]`, nothing is ever a float.
`write_report(url, name, stream, fmt)` streams a report of any size as CSV, JSON or Parquet. `url`
is what `duebook db url` prints, or the analyst's own login.
"""

from __future__ import annotations

from duebook.services.export import FORMATS, write_report
from duebook.services.frames import read_report, report_names

__all__ = ["FORMATS", "read_report", "report_names", "write_report"]
