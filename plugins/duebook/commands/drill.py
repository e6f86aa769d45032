"""The drill: an outage and the way back, with an expected result for every key."""

from __future__ import annotations

import io
import logging
import tempfile
from pathlib import Path
from typing import IO, Annotated, Any, Final, cast

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from duebook.session import AsJson, open_session

log = logging.getLogger("duebook.drill")

_LOG_WIDTH: Final = 140
_COUNTS: Final = (
    "lost",
    "doubled",
    "in_doubt",
    "holds_expired",
    "reminders_sent",
    "explained",
    "keys",
    "catch_up",
    "seconds",
)


def register(app: typer.Typer) -> None:
    """Add the command of this area."""
    app.command("drill")(drill)


def drill(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave its database and files there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rehearse an outage in a database of its own, and compare every key with what is expected."""
    from duebook.drill.run import run_drill

    session = open_session(as_json)
    document = run_drill(session.settings, session.console, keep=keep)
    session.show(document, render_drill)
    raise typer.Exit(0 if document["ok"] else 1)


def run_in_task() -> dict[str, Any]:
    """The drill as a task of Airflow: its lines go to the task's log, its counts are returned.

    Fails the task where a key is not as expected.
    """
    from duebook.airflow.failures import one_clear_line

    with one_clear_line():
        return _run_logged()


def _run_logged() -> dict[str, Any]:
    from pydantic import SecretStr

    from duebook.airflow.hooks import database_url_from_connection
    from duebook.drill.place import DrillError
    from duebook.drill.run import run_drill
    from duebook.settings import load_settings

    settings = load_settings()
    url = SecretStr(database_url_from_connection(settings.airflow_connection))
    console = Console(
        file=cast("IO[str]", _LogLines()), width=_LOG_WIDTH, no_color=True, emoji=False
    )
    with tempfile.TemporaryDirectory(prefix="duebook-drill-") as home:
        own = settings.model_copy(update={"home": Path(home), "database_url": url})
        document = run_drill(own, console)
    render_drill(document, console)
    if not document["ok"]:
        raise DrillError("not every key is as expected: see the table above")
    return {name: document[name] for name in _COUNTS}


class _LogLines(io.TextIOBase):
    """What is printed becomes lines of the log."""

    def __init__(self) -> None:
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            log.info("%s", line.rstrip())
        return len(text)


def render_drill(document: dict[str, Any], console: Console) -> None:
    """The table, what is wrong, and the incident report."""
    from duebook.commands.incidents import render_report

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("keys", justify="right")
    for name in ("group", "expected", "got", "ok"):
        table.add_column(name)
    for line in document["table"]:
        cells = (str(line["keys"]), line["group"], line["expected"], line["got"])
        table.add_row(*cells, "yes" if line["ok"] else "[red]no[/red]")
    console.print(table)
    for each in document["wrong"]:
        _say(
            console,
            f"[red]wrong[/red]: {each['operation_key']} ({each['account_id']}): expected "
            f"{each['expected']}; got {each['got']}",
        )
    for violation in document["violations"]:
        _say(console, f"[red]violated[/red]: {violation['invariant']}")
    for key in document["untold"]:
        _say(console, f"[red]not explained[/red]: {key}")
    render_report(document["report"], console)
    _say(
        console,
        f"{document['lost']} lost, {document['doubled']} doubled, {document['in_doubt']} in doubt; "
        f"{document['holds_expired']} holds expired, {document['reminders_sent']} reminders sent",
    )
    _say(
        console,
        f"sender tasks handed over twice: {document['tasks_twice']}; flushes delivered twice: "
        f"{document['flushes_twice']}; check: {len(document['violations']) or 'no'} violations",
    )
    right = document["keys"] - len(document["wrong"])
    _say(
        console,
        f"{right} of {document['keys']} keys as expected, {document['explained']} explained, in "
        f"{document['seconds']} s",
    )
    if "home" in document:
        _say(console, f"kept: {document['home']}, database {document['database']}")


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, highlight=False)
