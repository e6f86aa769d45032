"""Reports as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from duebook.session import AsJson, open_session


def register(app: typer.Typer) -> None:
    """Add the command of this area."""
    app.command("report")(report)


def report(
    name: Annotated[str | None, typer.Argument(help="Which; without, their names.")] = None,
    fmt: Annotated[str, typer.Option("--format", help="csv, json or parquet.")] = "csv",
    output: Annotated[Path | None, typer.Option("--output", help="File; default: stdout.")] = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", help="column=value, only such rows.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Leave what a spreadsheet takes for a formula.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a report as a file, streamed; or list the reports."""
    from duebook.db.connect import ensure_database_url
    from duebook.errors import InputError
    from duebook.reports import report_names, write_report

    session = open_session(as_json)
    if session.settings.database_url is None:
        session.connect()
    url = ensure_database_url(session.settings)
    if name is None:
        session.show(report_names(url), lambda names, console: console.print("\n".join(names)))
        return
    wanted: dict[str, str] = {}
    for each in where or ():
        column, mark, value = each.partition("=")
        if not mark:
            raise InputError(f"--where {each}: expected column=value")
        wanted[column] = value
    if output is None:
        write_report(url, name, sys.stdout.buffer, fmt, where=wanted, raw=raw)
        return
    # A file that is there is replaced only by a whole one.
    unfinished = output.with_name(f".{output.name}.part")
    try:
        with unfinished.open("wb") as stream:
            rows = write_report(url, name, stream, fmt, where=wanted, raw=raw)
        unfinished.replace(output)
    except OSError as error:
        raise InputError(f"{output}: {error.strerror or 'not writable'}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    session.show(
        {"report": name, "file": str(output), "rows": rows},
        lambda done, console: console.print(f"{done['rows']:,} rows of {name} in {output}"),
    )
