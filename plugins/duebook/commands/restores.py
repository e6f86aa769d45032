"""After a database was copied or restored, or a moving table was damaged."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from duebook.session import AsJson, open_session

restore_app = typer.Typer(no_args_is_help=True, help="After a database was copied or restored.")


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(restore_app, name="restore")
    app.command()(rebuild)


@restore_app.command("accept")
def restore_accept(
    name: Annotated[
        str | None,
        typer.Argument(help="Environment this database is from now on; needed for a copy."),
    ] = None,
    test: Annotated[
        bool, typer.Option("--test", help="A test database: sweep --now is allowed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be put in doubt; change nothing.")
    ] = False,
    without_witness: Annotated[
        bool,
        typer.Option(
            "--without-witness",
            help="It was put back to an earlier state, though no witness shows it.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Accept a copied or restored database; until then nothing is sent.

    A copy needs the NAME of what it is from now on. In one that was put back to an earlier state,
    what may have been sent since is put in doubt.
    """
    from duebook.services.restore import RestoreRequest, accept

    session = open_session(as_json)
    connect = session.connect()
    request = RestoreRequest(
        environment=session.settings.environment,
        by=session.settings.operator,
        name=name,
        is_test=test,
        witness=session.settings.witness_location,
        is_unwitnessed=without_witness,
        dry_run=dry_run,
    )
    session.show(accept(connect, request), render_accept)


def rebuild(
    apply: Annotated[
        bool, typer.Option("--apply/--dry-run", help="Change the tables, or only say how.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the moving tables, and intents that were never tried, again from the facts.

    --apply is refused while an incident is open. Exits 1 when a dry run found something to change.
    """
    from duebook.services.operate import require_no_incident
    from duebook.services.rebuild import rebuild as rebuild_moving

    session = open_session(as_json)
    connect = session.connect()
    if apply:
        require_no_incident(connect, "rebuild --apply")
    document = rebuild_moving(connect, by=session.settings.operator, apply=apply)
    session.show(document, render_rebuild)
    has_found = document["moves"] or document["remade"]
    raise typer.Exit(1 if has_found and not apply else 0)


def render_rebuild(document: dict[str, Any], console: Console) -> None:
    """How many intents go from where to where, and which are made again."""
    would = "" if document["applied"] else "would be "
    for each in document["remade"]:
        console.print(f"{each['intents']} intents {would}{each['done']}, such as {each['keys'][0]}")
    if not document["moves"]:
        console.print("every intent stands where its facts say: nothing to rebuild")
        return
    done = "moved" if document["applied"] else "would move (run it with --apply)"
    console.print(f"{document['intents']} intents {done}")
    table = Table("stood in", "belongs in", "intents", "for example")
    for move in document["moves"]:
        was = ", ".join(move["was"]) or "no place"
        table.add_row(was, move["place"], str(move["intents"]), move["keys"][0])
    console.print(table)


def render_accept(document: dict[str, Any], console: Console) -> None:
    """What was accepted, and what it put in doubt."""
    would = "would be " if document["dry_run"] else ""
    kind = ", a test database" if document["is_test"] else ""
    console.print(f"this database {would or 'is '}accepted as {document['environment']}{kind}")
    for lost in document["lost"]:
        flush_no = lost["known_flush_no"]
        known = "unknown" if flush_no is None else f"at flush {flush_no} of {lost['flush_no']}"
        console.print(
            f"  lost: batch {lost['batch_id']} of {lost['sender']}, sent at "
            f"{lost['at']:%Y-%m-%d %H:%M:%S} UTC, {known}"
        )
    if "restore_id" not in document:
        console.print("it is not behind a witness: nothing is put in doubt")
        return
    counts = document["put_in_doubt"]
    console.print(
        f"{would}put in doubt: {counts['due']} due, {counts['held']} held, "
        f"{counts['batches']} of batches"
    )
    table = Table("kind", "channel", "in doubt", "oldest due (UTC)", "newest due (UTC)")
    for row in document["kinds"]:
        table.add_row(
            row["kind"],
            row["channel"],
            str(row["in_doubt"]),
            f"{row['oldest_due_at']:%Y-%m-%d %H:%M:%S}",
            f"{row['newest_due_at']:%Y-%m-%d %H:%M:%S}",
        )
    if document["kinds"]:
        console.print(table)
    if document["lost_provider_accounts"]:
        console.print(
            "runs were lost: until their next full run, what "
            f"{', '.join(document['lost_provider_accounts'])} promises again for evidence from "
            "before now goes in doubt"
        )
