"""Duebook: one sender of the real sweep that posts webhooks, everything on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.peers.starting_line import database_url, options, run_from_common_start
from bench.server import connector
from duebook.channels.webhook import WebhookChannel, WebhookOptions
from duebook.db.sql import query
from duebook.services.sweep import SweepRequest, sweep


def main() -> None:
    wanted = options()
    request = SweepRequest(
        environment=str(wanted["environment"]),
        batch_size=int(wanted["batch_size"]),
        window_messages=int(wanted["window_messages"]),
        time_budget=timedelta(seconds=900),
    )
    hooks = WebhookOptions(
        master_keys=("a master key of at least 32 bytes, of a benchmark",),
        max_connections=int(wanted["connections"]),
        allow_private=True,
        ca_file=Path(str(wanted["ca_file"])),
    )
    channels = {"webhook": WebhookChannel(hooks)}
    connect = connector(database_url())
    connect().close()
    query("claim_batch")
    profile = wanted.get("profile")

    def send() -> dict[str, Any]:
        if not profile:
            return sweep(connect, request, channels).to_json()
        import cProfile

        profiler = cProfile.Profile()
        report: dict[str, Any] = profiler.runcall(
            lambda: sweep(connect, request, channels).to_json()
        )
        profiler.dump_stats(str(profile))
        return report

    run_from_common_start(send)


if __name__ == "__main__":
    main()
