"""The reports as pandas frames, for a notebook: money stays exact.

Minor units are nullable integers (`Int64`), major units are `decimal.Decimal`; neither ever becomes
a float, which pandas' own defaults make of a bigint column with a null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy
from sqlalchemy.exc import DBAPIError

from duebook.db.connect import engine
from duebook.errors import InputError, UnavailableError

if TYPE_CHECKING:
    import pandas as pd

REPORTS_SCHEMA: Final = "duebook_reports"


def report_names(url: str) -> list[str]:
    """Every report that the database at `url` has, in order.

    Raises UnavailableError when the database is away.
    """
    source = engine(url)
    try:
        return sorted(sqlalchemy.inspect(source).get_view_names(REPORTS_SCHEMA))
    except DBAPIError:
        raise UnavailableError("the database of the reports is away") from None
    finally:
        source.dispose()


def read_report(url: str, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A whole report, one row a row of the view; `columns` reads only these.

    Raises InputError naming what there is for an unknown report or column, and UnavailableError
    when the database is away.
    """
    import pandas as pd

    known = report_names(url)
    if name not in known:
        raise InputError(f"unknown report {name}; there are {', '.join(known)}")
    source = engine(url)
    try:
        view = sqlalchemy.Table(
            name, sqlalchemy.MetaData(), schema=REPORTS_SCHEMA, autoload_with=source
        )
        wanted = [_column(view, column) for column in columns or view.columns.keys()]
        with source.connect() as connection:
            rows = connection.execute(sqlalchemy.select(*wanted)).all()
    except DBAPIError:
        raise UnavailableError("the database of the reports is away") from None
    finally:
        source.dispose()
    values = zip(*rows, strict=True) if rows else ([] for _ in wanted)
    return pd.DataFrame(
        {
            column.name: pd.Series(list(told), dtype=_dtype(column))
            for column, told in zip(wanted, values, strict=True)
        }
    )


def _column(view: sqlalchemy.Table, name: str) -> sqlalchemy.Column[Any]:
    try:
        return view.columns[name]
    except KeyError:
        raise InputError(f"report {view.name} has no column {name}") from None


def _dtype(column: sqlalchemy.Column[Any]) -> str:
    """The dtype that holds a column's values and its nulls exactly; `object` where none does."""
    kinds = (
        (sqlalchemy.Boolean, "boolean"),
        (sqlalchemy.Integer, "Int64"),
        (sqlalchemy.String, "string"),
    )
    if isinstance(column.type, sqlalchemy.DateTime) and column.type.timezone:
        return "datetime64[us, UTC]"
    return next((dtype for kind, dtype in kinds if isinstance(column.type, kind)), "object")
