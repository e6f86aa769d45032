"""One sender of SMS as a process of its own, killed right after Twilio accepted.

    texting_process.py URL TWILIO_URL DIE_AT

Dies by SIGKILL once its send number DIE_AT (from 1) was answered and before anything of that window
is recorded. 0: does not die.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from duebook.channels.base import Message, SendResult
from duebook.channels.sms import SmsChannel, SmsOptions
from duebook.db.connect import connect_url
from duebook.services.sweep import SweepRequest, sweep
from tests.twilio_server import ACCOUNT, TOKEN


class DyingChannel(SmsChannel):
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
    """One sweep."""
    url, twilio, die_at = sys.argv[1:]
    channel = DyingChannel(SmsOptions(ACCOUNT, TOKEN, sender="+15005550001", base_url=twilio))
    channel.die_at = int(die_at)
    request = SweepRequest(environment="test", window_messages=10, batch_size=30)
    sweep(partial(connect_url, url, autocommit=True), request, {"sms": channel})


if __name__ == "__main__":
    main()
