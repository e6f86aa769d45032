"""What is in doubt: list it, look it up, resolve it. What has ended: send it again on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from duebook.session import AsJson, open_session

_SHOWN: Final = 50


class Verdict(StrEnum):
    """What a person knows of a key in doubt."""

    sent = "sent"
    not_sent = "not-sent"


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.command("doubts")(doubts)
    app.command("resolve")(resolve)
    app.command("resend")(resend)


def doubts(
    look_up: Annotated[
        bool, typer.Option("--look-up", help="First ask those who can know, such as a relay's log.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Everything that is known of what the provider may or may not have accepted."""
    from duebook.services.operate import doubts_in_full

    session = open_session(as_json)
    document = doubts_in_full(session.connect(), session.settings, look_up=look_up)
    session.show(document, render_doubts)


def resolve(
    key: Annotated[str, typer.Argument(help="Operation key that is in doubt.")],
    verdict: Annotated[
        Verdict,
        typer.Argument(help="sent: it was accepted. not-sent: it was not, so it is due again."),
    ],
    reason: Annotated[str, typer.Option("--reason", help="How you know; kept with your name.")],
    account: Annotated[
        str | None, typer.Option("--account", help="Needed where several accounts have the key.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what became of a key in doubt: it ends as sent, or is due again."""
    from duebook.services.resolve import Resolution
    from duebook.services.resolve import resolve as decide

    session = open_session(as_json)
    resolution = Resolution(
        operation_key=key,
        accepted=verdict is Verdict.sent,
        why=reason,
        by=session.settings.operator,
        account_id=account,
    )
    session.show(decide(session.connect(), resolution), render_resolution)


def resend(
    key: Annotated[str, typer.Argument(help="Operation key that has ended.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with your name.")],
    account: Annotated[
        str | None, typer.Option("--account", help="Needed where several accounts have the key.")
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--number", min=1, help="Which repeat; the same one again does nothing."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Promise once more what has ended, as a new occurrence with a key of its own, due now."""
    from duebook.services.resolve import resend as repeat

    session = open_session(as_json)
    document = repeat(
        session.connect(),
        key,
        why=reason,
        by=session.settings.operator,
        account_id=account,
        number=number,
    )
    session.show(document, render_resent)


def render_doubts(document: Any, console: Console) -> None:
    """What a look-up found, and each doubt with what the provider's own log has it under."""
    found = document["looked_up"]
    if found is not None:
        console.print(
            f"looked up {found['asked']}: {found['sent']} accepted, {found['due']} not known and "
            f"due again, {found['too_early']} too early, {found['cannot_tell']} can't be told",
            highlight=False,
        )
    if not document["doubts"]:
        console.print("nothing is in doubt")
    for each in document["doubts"][:_SHOWN]:
        for line in _doubt_lines(each):
            console.print(Text(line), soft_wrap=True)
    left_out = len(document["doubts"]) - _SHOWN
    if left_out > 0:
        console.print(f"{left_out} more: --json shows up to 1,000")


def _doubt_lines(doubt: Any) -> Iterator[str]:
    sender = f" by {doubt['sender']}" if doubt["sender"] else ""
    claimed = f", claimed {_second(doubt['claimed_at'])}{sender}" if doubt["claimed_at"] else ""
    batch = f" in batch {doubt['batch_id']} ({doubt['batch_ended_how'] or 'not ended'})"
    yield f"{doubt['operation_key']} of account {doubt['account_id']}"
    attempt = f"attempt {doubt['attempt_no']}{claimed}{batch}"
    yield f"  {doubt['cause']} since {_second(doubt['since'])}: {attempt}"
    yield f"  Message-ID {doubt['message_id']}"
    yield (
        f'  "not known" counts from {_second(doubt["look_up_from"])}; '
        f"too late from {_second(doubt['give_up_at'])}"
    )


def _second(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%SZ}"


def render_resolution(document: Any, console: Console) -> None:
    """One line."""
    what = "ended as sent" if document["done"] == "sent" else "is due again"
    console.print(f"{document['operation_key']} {what}")


def render_resent(document: Any, console: Console) -> None:
    """One line."""
    console.print(f"{document['operation_key']} is due again as {document['new_key']}")
