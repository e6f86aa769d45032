"""What people do with discrepancies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from duebook.session import AsJson, open_session

discrepancy_app = typer.Typer(
    no_args_is_help=True, help="Differences between books and provider, and who works on them."
)
Document = Mapping[str, Any]
Account = Annotated[str, typer.Option("--account", help="Provider account that it is of.")]
Kind = Annotated[str, typer.Argument(help="What differs, such as amount_mismatch.")]
Subject = Annotated[str, typer.Argument(help="What it is about, such as payment:acme:p1.")]
Why = Annotated[str, typer.Option("--reason", help="Why; kept with your name.")]
_SEVERE: Final = {"critical": "bold red", "high": "red", "normal": "", "low": "dim"}


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(discrepancy_app, name="discrepancy")


@discrepancy_app.command("list")
def discrepancy_list(
    account: Annotated[str | None, typer.Option("--account", help="Of this account.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Of this kind.")] = None,
    status: Annotated[
        str | None, typer.Option("--status", help="In this status; default: what wants somebody.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most.")] = 100,
    as_json: AsJson = False,
) -> None:
    """What stands, the severest and oldest first. Exit 1 when there is any."""
    from duebook.errors import InputError
    from duebook.services.discrepancies import KINDS, STATES, list_discrepancies

    for name, value, known in (("--kind", kind, KINDS), ("--status", status, STATES)):
        if value is not None and value not in known:
            raise InputError(f"{name} {value}: expected one of {', '.join(known)}")
    session = open_session(as_json)
    document = list_discrepancies(
        session.connect(), provider_account=account, kind=kind, status=status, limit=limit
    )
    session.show(document, render_list)
    raise typer.Exit(int(document["total"] > 0))


@discrepancy_app.command("show")
def discrepancy_show(
    account: Account, kind: Kind, subject: Subject, as_json: AsJson = False
) -> None:
    """One of them, with what runs found and people did."""
    from duebook.services.discrepancies import show_discrepancy

    session = open_session(as_json)
    session.show(show_discrepancy(session.connect(), account, kind, subject), render_one)


@discrepancy_app.command("acknowledge")
def discrepancy_acknowledge(
    account: Account,
    kind: Kind,
    subject: Subject,
    reason: Annotated[str | None, typer.Option("--reason", help="A remark, kept.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say that somebody has seen it."""
    _deal_with(account, kind, subject, "acknowledge", as_json, reason=reason)


@discrepancy_app.command("assign")
def discrepancy_assign(
    account: Account,
    kind: Kind,
    subject: Subject,
    to: Annotated[str, typer.Option("--to", help="Who works on it.")],
    as_json: AsJson = False,
) -> None:
    """Say who works on it."""
    _deal_with(account, kind, subject, "assign", as_json, assignee=to)


@discrepancy_app.command("resolve")
def discrepancy_resolve(
    account: Account, kind: Kind, subject: Subject, reason: Why, as_json: AsJson = False
) -> None:
    """Say that it will be gone; a run that still finds it opens it again."""
    _deal_with(account, kind, subject, "resolve", as_json, reason=reason)


@discrepancy_app.command("ignore")
def discrepancy_ignore(
    account: Account, kind: Kind, subject: Subject, reason: Why, as_json: AsJson = False
) -> None:
    """Leave it as it is until an amount changes."""
    _deal_with(account, kind, subject, "ignore", as_json, reason=reason)


@discrepancy_app.command("write-off")
def discrepancy_write_off(
    account: Account, kind: Kind, subject: Subject, reason: Why, as_json: AsJson = False
) -> None:
    """Give the difference up; another amount opens it again."""
    _deal_with(account, kind, subject, "write_off", as_json, reason=reason)


@discrepancy_app.command("reopen")
def discrepancy_reopen(
    account: Account, kind: Kind, subject: Subject, reason: Why, as_json: AsJson = False
) -> None:
    """Take back what was decided."""
    _deal_with(account, kind, subject, "reopen", as_json, reason=reason)


@discrepancy_app.command("force-match")
def discrepancy_force_match(
    account: Account,
    entry: Annotated[str, typer.Argument(help="The provider's entry.")],
    customer: Annotated[str, typer.Argument(help="Customer account of the payment.")],
    payment: Annotated[str, typer.Argument(help="The booked payment.")],
    reason: Why,
    as_json: AsJson = False,
) -> None:
    """Match an entry with a payment whatever its reference says; the next run applies it."""
    from duebook.services.discrepancies import force_match

    session = open_session(as_json)
    document = force_match(
        session.connect(),
        account,
        entry,
        customer,
        payment,
        by=session.settings.operator,
        reason=reason,
    )
    session.show(document, render_match)


@discrepancy_app.command("unmatch")
def discrepancy_unmatch(
    account: Account,
    entry: Annotated[str, typer.Argument(help="The provider's entry.")],
    reason: Why,
    as_json: AsJson = False,
) -> None:
    """Take a match by hand back; the next run matches the entry by its reference again."""
    from duebook.services.discrepancies import unmatch

    session = open_session(as_json)
    operator = session.settings.operator
    document = unmatch(session.connect(), account, entry, by=operator, reason=reason)
    session.show(document, render_match)


def _deal_with(
    account: str,
    kind: str,
    subject: str,
    act: str,
    as_json: bool,
    *,
    reason: str | None = None,
    assignee: str | None = None,
) -> None:
    from duebook.services.discrepancies import deal_with

    session = open_session(as_json)
    document = deal_with(
        session.connect(),
        account,
        kind,
        subject,
        act,
        by=session.settings.operator,
        reason=reason,
        assignee=assignee,
    )
    session.show(document, render_status)


def render_list(document: Document, console: Console) -> None:
    """A line each."""
    rows = document["discrepancies"]
    if not rows:
        console.print("nothing differs that wants somebody")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("severity", "days", "kind", "subject", "difference", "status", "assignee"):
        table.add_column(name, justify="right" if name in ("days", "difference") else "left")
    for row in rows:
        table.add_row(
            Text(row["severity"], _SEVERE.get(row["severity"], "")),
            str(row["age_days"]),
            row["kind"],
            row["subject"],
            _amount(row["difference"], row["currency"]),
            row["status"].replace("_", " "),
            row["assignee"] or "",
        )
    console.print(table)
    if document["total"] > len(rows):
        console.print(f"and {document['total'] - len(rows):,} more")


def render_one(document: Document, console: Console) -> None:
    """What it is, then its events."""
    title = f"{document['kind']} · {document['subject']} · {document['provider_account']}"
    console.print(Text(title, "bold"))
    status = str(document["status"]).replace("_", " ")
    owner = f", {document['assignee']} works on it" if document["assignee"] else ""
    console.print(f"  {status}, {document['severity']}, {document['age_days']} days{owner}")
    currency = document["currency"]
    console.print(
        f"  provider {_amount(document['provider_amount'], currency)}, "
        f"books {_amount(document['ledger_amount'], currency)}, "
        f"difference {_amount(document['difference'], currency)}"
    )
    if document["detail"]:
        console.print(f"  {document['detail']}")
    console.print()
    for event in document["events"]:
        who = f"run {event['run_id']}" if event["run_id"] else event["actor"]
        why = f": {event['reason']}" if event["reason"] else ""
        console.print(
            Text(f"{event['at']:%Y-%m-%d %H:%M:%S}Z  {event['act'].replace('_', ' ')} ({who}){why}")
        )


def render_status(document: Document, console: Console) -> None:
    """What it is now."""
    status = document["status"].replace("_", " ")
    console.print(f"{document['kind']} of {document['subject']} is {status}")


def render_match(document: Document, console: Console) -> None:
    """What the next run does."""
    console.print(
        f"entry {document['entry_id']}: {document['done']}; the next run of "
        f"{document['provider_account']} applies it"
    )


def _amount(amount: Any, currency: str | None) -> str:
    return "–" if amount is None else f"{currency} {amount:,}"
