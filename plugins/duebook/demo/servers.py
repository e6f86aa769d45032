"""The processes that stand in for the outside world: two Stripes and a mail server, on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from duebook.errors import ConfigurationError, UnavailableError
from duebook.settings import REPOSITORY_ROOT

STRIPE_KEY = "sk_test_demo"
MAIL_LOGIN, MAIL_PASSWORD = "duebook", "demo-mail-password"


@dataclass(frozen=True, slots=True)
class Servers:
    """Where they listen. `mailbox` gets one JSON line a message before the server says 250."""

    stripe: str
    localstripe: str
    mail_port: int
    mailbox: Path

    def mails_received(self) -> int:
        """Messages that the mail server took, by its own count."""
        if not self.mailbox.exists():
            return 0
        with self.mailbox.open("rb") as lines:
            return sum(1 for _ in lines)

    def set_stripe_clock(self, now: str | None) -> None:
        """Stop the stub's clock at an instant (ISO 8601), or let it run again."""
        request = urllib.request.Request(  # noqa: S310  an address of ours, on loopback
            f"{self.stripe}/_stub/clock",
            data=json.dumps({"now": now}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10):  # noqa: S310
            return


@contextlib.contextmanager
def running_servers(
    home: Path, stripe_now: str, *, refuse: Sequence[str] = (), pace: Path | None = None
) -> Iterator[Servers]:
    """Start the three, and end them whatever happens. The mail server turns `refuse` down.

    While the file `pace` is there, the mail server takes the seconds in it for each message.

    Raises ConfigurationError outside a checkout, whose tests/ holds the servers, and
    UnavailableError when one does not start.
    """
    if not (REPOSITORY_ROOT / "tests" / "stripe_stub").is_dir():
        raise ConfigurationError("the demo runs from a checkout of Duebook, whose tests/ it uses")
    mailbox = home / "mails.jsonl"
    with contextlib.ExitStack() as stack:
        stripe = stack.enter_context(_process("tests.stripe_stub", "--now", stripe_now))
        localstripe = stack.enter_context(_process("tests.stripe_stub.localstripe"))
        mail = stack.enter_context(
            _process(
                "tests.smtp_sink",
                *("--out", str(mailbox), "--auth", f"{MAIL_LOGIN}:{MAIL_PASSWORD}"),
                *(f"--refuse={address}" for address in refuse),
                *(() if pace is None else (f"--pace={pace}",)),
            )
        )
        yield Servers(stripe, localstripe, int(json.loads(mail)["listening"]), mailbox)


@contextlib.contextmanager
def _process(module: str, *arguments: str) -> Iterator[str]:
    """Run a module of the checkout; gives its first line, which says where it listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=REPOSITORY_ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        line = process.stdout.readline().strip() if process.stdout else ""
        if not line:
            raise UnavailableError(f"{module} did not start; try `python -m {module}`")
        yield line
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()
