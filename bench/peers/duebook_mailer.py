"""Duebook: one sender of the real sweep, through the real e-mail channel, everything on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from bench.peers.duebook_sender import profiled
from bench.peers.starting_line import database_url, options, run_from_common_start
from bench.server import connector
from duebook.channels.email import EmailChannel, EmailOptions
from duebook.config import load_config
from duebook.db.sql import query
from duebook.services.sweep import SweepRequest, sweep

_CONFIG: Final = Path(__file__).resolve().parents[1] / "duebook.toml"


def main() -> None:
    wanted = options()
    config = load_config(_CONFIG)
    sender = config.channels["email"].sender
    assert sender is not None
    request = SweepRequest(
        environment=str(wanted["environment"]),
        window_messages=int(wanted["window_messages"]),
        time_budget=timedelta(seconds=900),
    )
    mail = EmailOptions("127.0.0.1", int(wanted["port"]), "plain", sender)
    channels = {"email": EmailChannel(mail)}
    connect = connector(database_url())
    connect().close()
    query("claim_batch")
    profile = wanted.get("profile")

    def send() -> dict[str, Any]:
        def work() -> dict[str, Any]:
            return sweep(connect, request, channels, config).to_json()

        return profiled(work, str(profile)) if profile else work()

    run_from_common_start(send)


if __name__ == "__main__":
    main()
