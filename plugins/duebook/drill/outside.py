"""What comes from outside while the sweeps stand still: webhooks, and people with a shell."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self

import httpx
import stripe

from duebook.drill import history
from duebook.drill.place import ENDPOINT, WEBHOOK_SECRET, Place, first_line
from duebook.drill.provider import Provider

_FROZEN: Final = (("sweep",), ("reconcile", "--account", "night"))
_TIMEOUT_S: Final = 60


class Outside:
    """The provider, and the receiver that it posts to: the real one, as a process of its own."""

    def __init__(self, place: Place, shop: Provider) -> None:
        self._shop = shop
        self._process = place.start("duebook.cli", "serve", "webhooks", "--port", "0", "--json")
        self._address: str | None = None
        self._last: tuple[bytes, dict[str, str]] | None = None
        self._client = httpx.Client(timeout=_TIMEOUT_S, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.close()

    def settle(self, number: int, payment_id: str, at: datetime) -> int:
        """The provider settles a payment and tells it by a webhook; returns the answer's status."""
        charge_id = self._shop.settle(number, f"order-{payment_id}", history.AMOUNT_MINOR, at)
        event = {
            "id": f"evt_drill{number}",
            "object": "event",
            "type": "charge.succeeded",
            "data": {"object": {"id": charge_id, "object": "charge"}},
        }
        body = json.dumps(event).encode()
        signature = stripe.WebhookSignature.generate_signature_header(body.decode(), WEBHOOK_SECRET)
        self._last = body, {"Stripe-Signature": signature, "Content-Type": "application/json"}
        return self.post_again()

    def post_again(self) -> int:
        """Deliver the last event, again if it was before."""
        assert self._last is not None, "nothing was told yet"
        body, headers = self._last
        if self._address is None:
            self._address = json.loads(first_line(self._process, "the receiver"))["url"]
        answer = self._client.post(
            f"{self._address}/webhooks/{ENDPOINT}", content=body, headers=headers
        )
        return answer.status_code


@contextlib.contextmanager
def refused_commands(place: Place) -> Iterator[Callable[[], list[tuple[str, int, str]]]]:
    """Commands that replay by hand run meanwhile; gives what asks how they ended."""
    running: list[tuple[str, subprocess.Popen[Any]]] = [
        (" ".join(command), place.start("duebook.cli", *command, "--json")) for command in _FROZEN
    ]

    def ends() -> list[tuple[str, int, str]]:
        found = []
        for command, process in running:
            said, _ = process.communicate(timeout=_TIMEOUT_S)
            found.append((command, process.returncode, said))
        return found

    yield ends
