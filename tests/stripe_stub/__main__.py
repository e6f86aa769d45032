"""Run the stub as a process: prints its address on the first line, ends on SIGTERM or SIGINT.

    python -m tests.stripe_stub [--port N] [--now ISO] [--settle-after-hours N] [--manual-payouts]

Controls (JSON by POST): /_stub/clock {"now": "2026-03-04T00:00:00Z" | null}, /_stub/advance
{"seconds": 86400}, /_stub/payouts, /_stub/failures {"kind": "429", "retry_after": "1", "times": 2,
"path": "/v1/balance_transactions"}, and /_stub/dispute, fail_refund, fail_payout and
complete_payout {"id": "…"}.
"""

from __future__ import annotations

import argparse
import signal
import sys
from datetime import datetime, timedelta
from types import FrameType

from tests.stripe_stub.server import StripeStub


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stripe_stub")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--now", type=datetime.fromisoformat, help="stop the clock here (ISO)")
    parser.add_argument("--settle-after-hours", type=int, default=48)
    parser.add_argument("--manual-payouts", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    if told.now is not None and told.now.tzinfo is None:
        parser.error("--now needs an offset, such as 2026-03-01T00:00:00Z")
    stub = StripeStub(
        now=told.now,
        settle_after=timedelta(hours=told.settle_after_hours),
        payouts_daily=not told.manual_payouts,
        port=told.port,
        seed=told.seed,
    )

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        stub.start()
    except OSError as error:
        print(f"can't listen on port {told.port}: {error.strerror}", file=sys.stderr)
        return 3
    try:
        print(stub.address, flush=True)
        stub.wait()
    except KeyboardInterrupt:
        stub.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
