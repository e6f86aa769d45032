"""The command line: thin commands over the services, one exit code each.

0 done; 1 done, with differences, quarantined rows or violations; 2 input unreadable as a whole or
refused, nothing applied; 3 provider or database away. Every command takes `--json`.
"""

from __future__ import annotations

import os

# The pinned tzdata, not the system's zoneinfo, answers for every zone: set before anything asks.
os.environ.setdefault("PYTHONTZPATH", "")

import json
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import psycopg
import psycopg.errors
import typer

from duebook.commands import (
    bounces,
    calendar,
    channels,
    delivery,
    discrepancies,
    drill,
    holds,
    housekeeping,
    incidents,
    manners,
    mappings,
    pauses,
    reports,
    restores,
    rollout,
    settlements,
    webhooks,
)
from duebook.errors import (
    ConfigurationError,
    DuebookError,
    InputError,
    RefusedError,
    UnavailableError,
)
from duebook.instants import parse_instant
from duebook.logs import configure_logs
from duebook.session import AsJson, OverConnection, RowsOfQuery, open_session
from duebook.settings import Settings
from duebook.settlements.stores import FileStore

app = typer.Typer(
    name="duebook",
    help="Nightly settlement reconciliation in SQL, and notices that end in exactly one outcome.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
ledger_app = typer.Typer(no_args_is_help=True, help="The booked side of payments.")
contacts_app = typer.Typer(no_args_is_help=True, help="Where accounts are told.")
db_app = typer.Typer(no_args_is_help=True, help="The database Duebook works on.")
app.add_typer(ledger_app, name="ledger")
app.add_typer(contacts_app, name="contacts")
app.add_typer(db_app, name="db")
for area in (
    bounces,
    calendar,
    channels,
    holds,
    pauses,
    incidents,
    discrepancies,
    settlements,
    mappings,
    delivery,
    manners,
    reports,
    restores,
    housekeeping,
    rollout,
    webhooks,
    drill,
):
    area.register(app)

INTERRUPTED, UNEXPECTED = 130, 70
PLEASE_REPORT = "this should not happen, please report it"


def airflow_probe(settings: Settings) -> Callable[[], Mapping[str, bool]] | None:
    """Asks the Airflow of this home, where one runs, which DAGs are paused."""
    from duebook.airflow.local import paused_dags

    return paused_dags(settings)


def object_store(url: str) -> FileStore:
    """The object store at a URL; Airflow is imported only for one."""
    from duebook.airflow.object_store import open_object_store

    return open_object_store(url)


@app.command()
def migrate(as_json: AsJson = False) -> None:
    """Bring the database to this version: schemas, roles, tables, functions, reports."""
    from duebook.services.operate import migrate_database

    session = open_session(as_json)
    session.show(migrate_database(session.settings), "migrate")


@app.command()
def apply(
    file: Annotated[
        Path | None, typer.Argument(help="duebook.toml; default: the shipped one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write provider accounts, kinds, channels and policies of duebook.toml to the database."""
    from duebook.config import load_config
    from duebook.services.apply import apply_config
    from duebook.services.mapping import check_samples
    from duebook.services.restore import require_witness

    session = open_session(as_json)
    config = load_config(file or session.settings.config_file)
    check_samples(config.provider_accounts)
    connect = session.connect()
    require_witness(connect, config, session.settings.witness_location)
    report = apply_config(connect, config, by=session.settings.operator)
    session.show(report.to_json(), "apply")


@ledger_app.command("import")
def ledger_import(
    file: Annotated[Path | None, typer.Argument(help="The books as CSV.")] = None,
    connection: OverConnection = None,
    query: RowsOfQuery = None,
    until: Annotated[
        str | None, typer.Option("--until", help="The books are complete up to this instant.")
    ] = None,
    account: Annotated[
        list[str] | None, typer.Option("--account", help="For these provider accounts; or all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Import booked payments from CSV or a query; bad rows are named and kept."""
    from duebook.services.imports import import_ledger
    from duebook.services.operate import from_environment, load_configuration
    from duebook.services.outside import given_rows

    session = open_session(as_json)
    config = load_configuration(session.settings)
    with given_rows(file, connection, query, from_environment) as rows:
        report = import_ledger(
            session.connect(),
            rows,
            config,
            until=parse_instant(until, "--until"),
            complete_for=account or (),
        )
    session.show(report.to_json(), "import")
    raise typer.Exit(report.exit_code)


@contacts_app.command("import")
def contacts_import(file: Path, as_json: AsJson = False) -> None:
    """Import contacts from CSV; bad rows are named and kept, good ones applied."""
    from duebook.services.imports import import_contacts

    session = open_session(as_json)
    report = import_contacts(session.connect(), file)
    session.show(report.to_json(), "import")
    raise typer.Exit(report.exit_code)


@app.command()
def reconcile(
    account: Annotated[str, typer.Option("--account", help="Provider account of duebook.toml.")],
    file: Annotated[
        list[Path] | None, typer.Option("--file", help="Settlement file; repeatable.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="Judge pending and missing as of.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show all, write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Pull what a provider settled, compare it with the ledger, write what changed."""
    from duebook.services.operate import reconcile_account, require_no_incident
    from duebook.terminal import progress

    session = open_session(as_json)
    connect = session.connect()
    if not dry_run:
        require_no_incident(connect, "a manual reconciliation")
    with progress(session.console) as advance:
        report = reconcile_account(
            connect,
            session.settings,
            account=account,
            files=tuple(file or ()),
            as_of=parse_instant(as_of, "--as-of"),
            dry_run=dry_run,
            progress=advance,
            stores=object_store,
        )
    session.show(report.to_json(), "reconcile")
    raise typer.Exit(report.exit_code)


@app.command()
def sweep(
    now: Annotated[
        str | None, typer.Option("--now", help="Test databases only: due as of.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Claim what is due in bounded batches, send it, and record how each ended."""
    from duebook.services.operate import require_no_incident, sweep_due

    session = open_session(as_json)
    connect = session.connect()
    require_no_incident(connect, "a manual sweep")
    report = sweep_due(connect, session.settings, now=parse_instant(now, "--now"))
    session.show(report.to_json(), "sweep")


@app.command()
def status(as_json: AsJson = False) -> None:
    """What is promised, what waits, and what needs a person."""
    from duebook.services.operate import current_status

    session = open_session(as_json)
    probe = airflow_probe(session.settings)
    session.show(current_status(session.connect(), session.settings, probe), "status")


@app.command()
def explain(
    subject: Annotated[
        str, typer.Argument(help="Operation key, account, payment, reference or run.")
    ],
    as_json: AsJson = False,
) -> None:
    """The story of a payment, an account, a key or a run, and why nothing was sent."""
    from duebook.services.explain import explain as tell

    session = open_session(as_json)
    session.show(tell(session.connect(), subject).to_json(), "explain")


@app.command()
def check(as_json: AsJson = False) -> None:
    """Prove the invariants: every intent in one place, one outcome a key, nothing orphaned."""
    from duebook.services.check import check as prove

    session = open_session(as_json)
    report = prove(session.connect())
    session.show(report, "check")
    raise typer.Exit(1 if report["violations"] else 0)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Look at the database, roles, time zones, connections, mail login and DAGs."""
    from duebook.services.operate import examine

    session = open_session(as_json)
    report = examine(
        session.connection_factory(),
        session.settings,
        airflow_probe(session.settings),
        object_store,
    )
    session.show(report, "doctor")
    raise typer.Exit(report["exit_code"])


@db_app.command("url")
def db_url(as_json: AsJson = False) -> None:
    """Print the URL of the database, password included: for psql on this machine."""
    from duebook.db.connect import ensure_database_url

    session = open_session(as_json)
    url = ensure_database_url(session.settings)
    sys.stdout.write((json.dumps({"url": url}) if as_json else url) + "\n")


@app.command()
def up(as_json: AsJson = False) -> None:
    """Start the embedded database and Airflow with its UI on loopback; print the login."""
    from duebook.airflow.local import start_local

    session = open_session(as_json)
    session.show(start_local(session.settings, session.console), "up")


@app.command()
def down(as_json: AsJson = False) -> None:
    """End what `up` started."""
    from duebook.airflow.local import stop_local

    session = open_session(as_json)
    session.show(stop_local(session.settings), "down")


@app.command()
def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the stack running at the end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Two nights on real processes: pull, diff, notify; prints what happened at each step."""
    from duebook.demo.run import run_demo

    session = open_session(as_json)
    document = run_demo(session.settings, session.console, keep=keep)
    if session.as_json:
        session.show(document, "demo")


def main() -> None:
    """Run one command; a user sees one line about whatever went wrong, never a traceback."""
    configure_logs()
    try:
        require_text(sys.argv[1:])
        code = app(standalone_mode=False)
    except DuebookError as error:
        fail(error, error.exit_code)
    except psycopg.Error as error:
        fail(*_of_database(error))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        fail(ConfigurationError(f"{place}{error.strerror or type(error).__name__}"), 2)
    except Exception as error:
        fail(*_of_exception(error))
    else:
        if code == INTERRUPTED:
            fail(DuebookError("interrupted; what was committed stays, the next run picks up"), code)
        sys.exit(code)


def require_text(arguments: Sequence[str]) -> None:
    """Raise InputError for an argument that is not text in this machine's encoding."""
    for number, argument in enumerate(arguments, start=1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise InputError(f"argument {number} is not UTF-8") from None


def _of_database(error: psycopg.Error) -> tuple[Exception, int]:
    from duebook.db.connect import describe, is_away, unavailable

    if is_away(error):
        return unavailable(error), UnavailableError.exit_code
    if isinstance(error, psycopg.errors.UndefinedFunction | psycopg.errors.UndefinedTable):
        said = f"the database lacks what this version needs ({describe(error)}): `duebook migrate`"
        return RefusedError(said), RefusedError.exit_code
    said = f"the database refused a statement: {describe(error)}; {PLEASE_REPORT}"
    return DuebookError(said), UNEXPECTED


def _of_exception(error: Exception) -> tuple[Exception, int]:
    """Usage errors are typer's own; of anything else only its place is safe to show."""
    usage = getattr(error, "format_message", None)
    if usage is None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
        said = f"unexpected {type(error).__name__} at {place}; {PLEASE_REPORT}"
        return DuebookError(said), UNEXPECTED
    context = getattr(error, "ctx", None)
    if not usage():
        # A command that was given nothing: its help is the answer, and is printed by now.
        sys.exit(2)
    command = context.command_path if context else "duebook"
    return InputError(f"{usage().rstrip('.')}; see `{command} --help`"), 2


def fail(error: Exception, code: int) -> NoReturn:
    """One line on stderr, and as JSON on stdout where that was asked for."""
    said = " ".join(str(error).split())
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"error": said}) + "\n")
    sys.stderr.write(f"duebook: {said}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
