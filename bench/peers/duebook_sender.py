"""Duebook: one sender of the real sweep, through the no-op channel, everything else on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from bench.peers.starting_line import database_url, options, run_from_common_start
from bench.server import connector
from duebook.channels.noop import NoopChannel
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
    connect = connector(database_url())
    channels = {"noop": NoopChannel()}
    connect().close()
    query("claim_batch")
    profile = wanted.get("profile")

    def drain() -> dict[str, Any]:
        if profile:
            return profiled(lambda: sweep(connect, request, channels).to_json(), str(profile))
        return sweep(connect, request, channels).to_json()

    run_from_common_start(drain)


def profiled(work: Any, path: str) -> dict[str, Any]:
    """Run `work` under cProfile, whose figures go to `path`."""
    import cProfile

    profiler = cProfile.Profile()
    report: dict[str, Any] = profiler.runcall(work)
    profiler.dump_stats(path)
    return report


if __name__ == "__main__":
    main()
