"""The reversible rollout beside an old sender."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

import typer
from rich.console import Console
from rich.table import Table

from duebook.session import AsJson, OverConnection, RowsOfQuery, open_session

rollout_app = typer.Typer(
    no_args_is_help=True, help="Duebook beside an old sender: who is live, and how both compare."
)
Document = Mapping[str, Any]
Account = Annotated[str | None, typer.Option("--account", help="Of this provider account.")]
_ANSWERS: Final = {
    "moved": "moved",
    "unknown": "not moved: no such intent",
    "ended": "not moved: it has ended",
    "already": "not moved: it is there already",
    "in_hand": "not moved: a sender of ours holds it, or may have sent it",
    "sent": "not moved: the old sender took or sent it",
    "never_asks": "not moved: an old sender does not ask, so nobody can tell whether it sends it",
}


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(rollout_app, name="rollout")


@rollout_app.command("status")
def rollout_status(
    account: Account = None,
    nights: Annotated[int, typer.Option("--nights", min=1, max=1000, help="Lines.")] = 14,
    as_json: AsJson = False,
) -> None:
    """Modes, cohorts, old senders, and the last nights. Exit 1 when the two sides differ."""
    from duebook.services import rollout

    session = open_session(as_json)
    document = rollout.rollout_status(session.connect(), provider_account=account, limit=nights)
    session.show(document, render_status)
    raise typer.Exit(int(any(_differs(each) for each in document["nights"])))


@rollout_app.command("compare")
def rollout_compare(
    account: Account = None,
    night: Annotated[str | None, typer.Option("--night", help="Of this date.")] = None,
    customer: Annotated[str | None, typer.Option("--customer", help="Customer account.")] = None,
    verdict: Annotated[
        str | None, typer.Option("--verdict", help="Only these; default: where the two differ.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Key by key: ours beside theirs. Exit 1 when there is any."""
    from duebook.errors import InputError
    from duebook.services import rollout

    if verdict is not None and verdict not in rollout.VERDICTS:
        raise InputError(f"--verdict {verdict}: expected one of {', '.join(rollout.VERDICTS)}")
    session = open_session(as_json)
    document = rollout.compare(
        session.connect(),
        provider_account=account,
        night=None if night is None else _date(night),
        account_id=customer,
        verdict=verdict,
        limit=limit,
    )
    session.show(document, render_comparison)
    raise typer.Exit(int(document["total"] > 0))


@rollout_app.command("whose")
def rollout_whose(
    customer: Annotated[str, typer.Argument(help="Customer account.")], as_json: AsJson = False
) -> None:
    """Who tells this account of its next change, and which cohort decides it."""
    from duebook.services import rollout

    session = open_session(as_json)
    session.show(rollout.whose(session.connect(), customer), render_whose)


@rollout_app.command("observe")
def rollout_observe(
    sender: Annotated[str, typer.Option("--sender", help="Old sender whose log it is.")],
    file: Annotated[Path | None, typer.Argument(help="Its log as CSV.")] = None,
    connection: OverConnection = None,
    query: RowsOfQuery = None,
    as_json: AsJson = False,
) -> None:
    """Take what an old sender says that it sent; bad rows are named and kept."""
    from duebook.services.imports import import_sends
    from duebook.services.operate import from_environment
    from duebook.services.outside import given_rows

    session = open_session(as_json)
    source = "file" if query is None else "query"
    with given_rows(file, connection, query, from_environment) as rows:
        report = import_sends(session.connect(), rows, sender, source)
    session.show(report.to_json(), "import")
    raise typer.Exit(report.exit_code)


@rollout_app.command("move")
def rollout_move(
    keys: Annotated[list[str], typer.Argument(help="Operation keys.")],
    customer: Annotated[str, typer.Option("--customer", help="Customer account of the keys.")],
    to: Annotated[str, typer.Option("--to", help="live: to Duebook; shadow: to the old sender.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with your name.")],
    as_json: AsJson = False,
) -> None:
    """Move keys by name between the old sender and Duebook. Exit 1 when one was not moved."""
    from duebook.errors import InputError
    from duebook.services import rollout

    if to not in ("live", "shadow"):
        raise InputError(f"--to {to}: expected live or shadow")
    session = open_session(as_json)
    document = rollout.move_keys(
        session.connect(),
        [(customer, key) for key in keys],
        cast("Literal['live', 'shadow']", to),
        by=session.settings.operator,
        reason=reason,
    )
    session.show(document, render_moved)
    raise typer.Exit(int(any(each["answer"] != "moved" for each in document["keys"])))


@rollout_app.command("drill")
def rollout_drill(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave its database and files there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rehearse the rollout, and back, beside an old sender; each key is sent by one of the two."""
    from duebook.drill.rollout import run_rollout_drill

    session = open_session(as_json)
    document = run_rollout_drill(session.settings, session.console, keep=keep)
    session.show(document, render_drill)
    raise typer.Exit(0 if document["ok"] else 1)


def _date(text: str) -> Any:
    from datetime import date

    from duebook.errors import InputError

    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"--night {text}: expected a date such as 2026-11-30") from None


def _differs(night: Document) -> bool:
    odd = night["only_theirs"] + night["earlier"] + night["later"] + night["doubled"]
    return bool(odd or (night["ownership"] == "shadow" and night["only_ours"]))


def render_status(document: Document, console: Console) -> None:
    """Modes, cohorts, senders, nights."""
    for each in document["provider_accounts"]:
        console.print(f"{each['provider_account']}: {each['mode']}")
    for each in document["cohorts"]:
        console.print(f"cohort {each['cohort']}: {each['mode']}, {_who(each)}", soft_wrap=True)
        console.print(
            f"  version {each['cohort_version']}, {each['stated_at']:%Y-%m-%d %H:%M} "
            f"by {each['stated_by']}",
            style="dim",
        )
    for each in document["old_senders"]:
        asks = "asks before it sends" if each["asks"] else "does not ask"
        console.print(f"old sender {each['sender']}: {asks}, {each['send_count']:,} sends known")
    if not document["nights"]:
        console.print("nothing to compare yet")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = ("both", "only_ours", "only_theirs", "earlier", "later", "waiting", "doubled")
    for name in ("night", "account", "whose"):
        table.add_column(name)
    for name in columns:
        table.add_column(name.replace("_", " "), justify="right")
    for row in document["nights"]:
        table.add_row(
            str(row["night"]),
            str(row["provider_account"] or ""),
            {"live": "Duebook", "shadow": "old sender"}.get(row["ownership"], ""),
            *(f"{row[name]:,}" for name in columns),
        )
    console.print(table)


def _who(cohort: Document) -> str:
    parts = []
    if cohort["account_count"] is not None:
        parts.append(f"{cohort['account_count']:,} accounts by name")
    if cohort["percent"] is not None:
        parts.append(f"{cohort['percent'].normalize():f} % of accounts")
    if cohort["attribute"] is not None:
        parts.append(f"{cohort['attribute']} {', '.join(cohort['attribute_values'])}")
    if cohort["provider_accounts"] is not None:
        parts.append(f"at {', '.join(cohort['provider_accounts'])}")
    return "; ".join(parts)


def render_comparison(document: Document, console: Console) -> None:
    """A line a key."""
    if not document["keys"]:
        console.print("nothing to show")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("night", "verdict", "account", "payment", "ours", "theirs", "evidence"):
        table.add_column(name)
    for row in document["keys"]:
        evidence = f"{row['entry_id']} v{row['entry_version']}" if row["entry_id"] else ""
        table.add_row(
            str(row["night"]),
            row["verdict"] + (" (told twice)" if row["is_doubled"] else ""),
            row["account_id"],
            row["payment_id"] or row["operation_key"] or "",
            _minute(row["ours_at"]),
            _minute(row["theirs_at"]),
            evidence or f"{row['sender']} {row['external_id']}",
        )
    console.print(table)
    if document["total"] > len(document["keys"]):
        console.print(f"and {document['total'] - len(document['keys']):,} more (--limit)")


def _minute(instant: Any) -> str:
    return "" if instant is None else f"{instant:%Y-%m-%d %H:%M}"


def render_whose(document: Document, console: Console) -> None:
    """A line a provider account."""
    for each in document["provider_accounts"]:
        teller = {"live": "Duebook", "shadow": "the old sender"}.get(each["mode"], "nobody")
        why = "its own mode"
        if each["cohort"] is not None:
            why = f"cohort {each['cohort']}, version {each['cohort_version']}"
        console.print(f"{each['provider_account']}: {teller} ({each['mode']}, by {why})")


def render_moved(document: Document, console: Console) -> None:
    """A line a key."""
    for each in document["keys"]:
        text = f"{each['operation_key']}: {_ANSWERS[each['answer']]}"
        console.print(text, soft_wrap=True, highlight=False)


def render_drill(document: Document, console: Console) -> None:
    """The sums, and what is wrong."""
    for each in document["wrong"]:
        console.print(f"[red]wrong[/red]: {each}", soft_wrap=True, highlight=False)
    for violation in document["violations"]:
        console.print(f"[red]violated[/red]: {violation['invariant']}", highlight=False)
    compared = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in document["comparison"].items()
    )
    console.print(f"compared: {compared}", highlight=False, soft_wrap=True)
    console.print(
        f"{document['nights']} nights, {document['keys']:,} keys, {document['kills']} kills: "
        f"{document['sent_by_old_sender']:,} sent by the old sender, "
        f"{document['sent_by_duebook']:,} by Duebook; {document['lost']} lost, "
        f"{document['doubled']} doubled, in {document['seconds']} s",
        highlight=False,
        soft_wrap=True,
    )
