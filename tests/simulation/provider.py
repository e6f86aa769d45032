"""A provider outside of everything: what it accepted it has sent, whoever forgets it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from duebook.channels.base import Message, SendResult
from tests.simulation.actors import current
from tests.simulation.model import Model

Answer = Literal["accepted", "lost", "later", "busy", "refused", "unknown", "raises"]
ANSWERS: tuple[Answer, ...] = (
    "accepted", "lost", "later", "busy", "refused", "unknown", "raises"
)  # fmt: skip


@dataclass
class Provider:
    """One account at it. `remembers` is how long it recognises a repeat; None: never."""

    model: Model
    clock: Callable[[], float]
    remembers: timedelta | None = None
    script: deque[Answer] = field(default_factory=deque)
    taken_at: dict[str, float] = field(default_factory=dict)

    def take(self, message_id: str, key: str, sent_at: float) -> None:
        """Accept, unless it is a repeat that it still recognises.

        However long its sender sleeps, what was on its way at `sent_at` arrived in I/O time.
        """
        at = self.taken_at.get(message_id)
        kept = timedelta(0) if self.remembers is None else self.remembers
        if at is not None and abs(sent_at - at) < kept.total_seconds():
            return
        self.taken_at[message_id] = sent_at
        self.model.accept(key)

    def answer(self, message: Message, sent_at: float) -> SendResult:
        """Do with one message what the script says next; accept when it says nothing."""
        word = self.script.popleft() if self.script else "accepted"
        if word in ("accepted", "lost", "raises"):
            self.take(message.message_id, message.operation_key, sent_at)
        if word == "accepted":
            return SendResult("accepted", message.message_id, "250")
        if word == "raises":
            raise RuntimeError("a channel that breaks its word")
        if word == "later":
            return SendResult("later", code="451", retry_after=timedelta(minutes=5))
        if word == "busy":
            return SendResult("later", code="452", scope="message")
        if word == "refused":
            return SendResult("refused", code="550 5.7.1")
        return SendResult("unknown", code="connection")


@dataclass
class SimulatedChannel:
    """What one process has of a provider; each send is two steps of the history."""

    provider: Provider
    before_send: Callable[[str], None]
    name: str
    io_timeout: timedelta = timedelta(seconds=5)
    max_concurrency: int = 1

    @property
    def idempotent(self) -> bool:
        return self.provider.remembers is not None

    @property
    def safe_retry_for(self) -> timedelta | None:
        """Well inside of what the provider remembers."""
        remembers = self.provider.remembers
        return None if remembers is None else remembers - timedelta(hours=1)

    async def open(self) -> None:
        pass

    async def send(self, message: Message) -> SendResult:
        actor = current()
        assert actor is not None
        self.before_send(message.operation_key)
        actor.is_waiting_for_io, actor.seen["is_answered"] = True, False
        sent_at = self.provider.clock()
        actor.step()
        result = self.provider.answer(message, sent_at)
        actor.seen["is_answered"] = True
        actor.step()
        actor.is_waiting_for_io = False
        return result

    async def close(self) -> None:
        pass

    async def verify(self) -> str:
        return "simulated"
