"""Reservations that expire."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from duebook.session import AsJson, open_session

hold_app = typer.Typer(no_args_is_help=True, help="Reservations with a fixed end.")
_LISTED = 100
# A whole number of four bytes.
MOST = 2**31 - 1

Account = Annotated[str, typer.Argument(help="Customer account.")]
Hold = Annotated[str, typer.Argument(help="Name of the hold, unique for the account.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(hold_app, name="hold")


@hold_app.command("create")
def hold_create(
    account: Account,
    hold: Hold,
    expires_at: Annotated[
        str | None, typer.Option("--expires-at", help="Instant at which it ends, with its offset.")
    ] = None,
    hold_for: Annotated[
        str | None, typer.Option("--for", help="How long from now instead: PT15M, P1D.")
    ] = None,
    resource: Annotated[
        str | None, typer.Option("--resource", help="What it reserves, if that is counted.")
    ] = None,
    quantity: Annotated[int, typer.Option("--quantity", max=MOST, help="How much of it.")] = 1,
    payment: Annotated[
        str | None, typer.Option("--payment", help="Payment that is to confirm it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Hold something until an instant that never moves; the same hold again changes nothing."""
    from duebook.config import parse_duration
    from duebook.errors import InputError
    from duebook.instants import parse_instant
    from duebook.services.hold import HoldRequest, create

    try:
        span = None if hold_for is None else parse_duration(hold_for)
    except (ValueError, OverflowError) as error:
        raise InputError(f"--for {hold_for!r}: {error}") from None
    session = open_session(as_json)
    request = HoldRequest(
        account_id=account,
        hold=hold,
        expires_at=parse_instant(expires_at, "--expires-at"),
        hold_for=span,
        resource=resource,
        quantity=quantity,
        payment_id=payment,
    )
    document = create(session.connect(), request, by=session.settings.operator)
    session.show(document, render_created)


@hold_app.command("confirm")
def hold_confirm(
    account: Account,
    hold: Hold,
    payment: Annotated[
        str | None,
        typer.Option("--payment", help="The payment that came: too late, it re-holds or refunds."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Confirm a hold. Exit 0: it is held; 1: it is not (expired, cancelled, refund)."""
    from duebook.services.hold import HELD, confirm
    from duebook.services.operate import load_configuration

    session = open_session(as_json)
    document = confirm(
        session.connect(),
        account,
        hold,
        payment_id=payment,
        by=session.settings.operator,
        config=load_configuration(session.settings),
    )
    session.show(document, render_answer)
    raise typer.Exit(int(document["answer"] not in HELD))


@hold_app.command("cancel")
def hold_cancel(
    account: Account,
    hold: Hold,
    reason: Annotated[
        str, typer.Option("--reason", help="Why; kept with your name.")
    ] = "cancelled",
    as_json: AsJson = False,
) -> None:
    """Cancel a hold. Exit 0: it is cancelled; 1: a payment had ended it, and that stays."""
    from duebook.services.hold import cancel

    session = open_session(as_json)
    operator = session.settings.operator
    document = cancel(session.connect(), account, hold, reason=reason, by=operator)
    session.show(document, render_answer)
    raise typer.Exit(int(document["answer"] not in ("cancelled", "already_cancelled")))


@hold_app.command("list")
def hold_list(
    account: Annotated[str | None, typer.Option("--account", help="Of this account.")] = None,
    resource: Annotated[str | None, typer.Option("--resource", help="Of this resource.")] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", help="open, expired, confirmed, reheld, refunded or cancelled, by the clock."
        ),
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, help="At most so many.")] = _LISTED,
    as_json: AsJson = False,
) -> None:
    """Holds and what they are now, the next to expire first."""
    from duebook.services.hold import list_holds

    session = open_session(as_json)
    document = list_holds(
        session.connect(), account_id=account, resource=resource, state=state, most=most
    )
    session.show(document, render_holds)


@hold_app.command("resource")
def hold_resource(
    resource: Annotated[str, typer.Argument(help="Name of what is reserved.")],
    capacity: Annotated[str, typer.Argument(help="How much there is; `none`: no limit.")],
    as_json: AsJson = False,
) -> None:
    """State how much of something can be held; less than is taken takes no hold away."""
    from duebook.errors import InputError
    from duebook.services.hold import set_resource

    most = None if capacity == "none" else capacity
    if most is not None and not (most.isdecimal() and most.isascii() and int(most) < 2**31):
        raise InputError(f"capacity: {capacity!r}: expected a whole number from 0, or none")
    session = open_session(as_json)
    document = set_resource(
        session.connect(),
        resource,
        None if most is None else int(most),
        by=session.settings.operator,
    )
    session.show(document, render_resource)


def render_created(document: Any, console: Console) -> None:
    """One line: whether it was made, until when, and its key."""
    done = "held" if document["done"] == "created" else f"exists ({document['state']}), held"
    _say(console, f"{document['hold']} {done} until {document['expires_at']}")
    _say(console, document["operation_key"])


def render_answer(document: Any, console: Console) -> None:
    """One line: the answer, in words."""
    payment = document["payment_id"]
    meaning = {
        "confirmed": "confirmed",
        "already_confirmed": "confirmed before",
        "expired": f"expired {document['expires_at']}",
        "cancelled": "cancelled",
        "already_cancelled": "cancelled before",
        "reheld": f"held again for payment {payment}, which came after its end",
        "refund": f"expired, and could not be held again: payment {payment} is to be refunded",
    }
    _say(console, f"{document['hold']}: {meaning[document['answer']]}")
    if document["refund_key"]:
        _say(console, document["refund_key"])


def render_resource(document: Any, console: Console) -> None:
    """One line: how much there is, taken and free."""
    limit = "no limit" if document["capacity"] is None else f"{document['free']} free"
    _say(
        console,
        f"{document['resource']}: capacity {document['capacity'] or 'none'}, "
        f"{document['confirmed']} confirmed, {document['open']} open, {limit}",
    )


def render_holds(document: Any, console: Console) -> None:
    """A table, one row a hold."""
    table = Table(box=None)
    for column in ("account", "hold", "state", "expires at", "resource", "payment"):
        table.add_column(column)
    for row in document:
        quantity = f"{row['quantity']} of {row['resource']}" if row["resource"] else ""
        cells = (
            row["account_id"],
            row["hold"],
            row["state"],
            row["expires_at"],
            quantity,
            row["payment_id"] or "",
        )
        # Names are others' texts and may hold what rich would take for markup.
        table.add_row(*map(Text, cells))
    console.print(table)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)
