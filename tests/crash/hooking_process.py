"""One sender of webhooks as a process of its own, killed right after a receiver accepted.

    hooking_process.py URL DIE_AT

Dies by SIGKILL once its send number DIE_AT (from 1) was answered and before anything of that window
is recorded. 0: does not die. Prints its report otherwise.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins"))

from duebook.channels.base import Message, SendResult
from duebook.channels.webhook import WebhookChannel, WebhookOptions
from duebook.db.connect import connect_url
from duebook.services.sweep import SweepRequest, sweep

MASTER_KEY = "a master key of at least 32 bytes, of a test"


class DyingChannel(WebhookChannel):
    """The real one, over a process that ends in the middle."""

    die_at = 0
    answered = 0

    async def send(self, message: Message) -> SendResult:
        result = await super().send(message)
        self.answered += 1
        if self.answered == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


def main() -> None:
    url, die_at = sys.argv[1:]
    channel = DyingChannel(
        WebhookOptions(
            master_keys=(MASTER_KEY,),
            allow_private=True,
            io_timeout=timedelta(seconds=10),
            max_connections=4,
        )
    )
    channel.die_at = int(die_at)
    request = SweepRequest(environment="test", window_messages=10, batch_size=30)
    report = sweep(partial(connect_url, url, autocommit=True), request, {"webhook": channel})
    print(json.dumps(report.to_json()), flush=True)


if __name__ == "__main__":
    main()
