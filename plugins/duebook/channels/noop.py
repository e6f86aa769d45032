"""A channel that reaches nobody and accepts at once: for benchmarks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from duebook.channels.base import Message, SendResult

_ACCEPTED = SendResult("accepted", code="250")


class NoopChannel:
    """Accepts every message at once; counts them in `sent`."""

    def __init__(
        self,
        name: str = "noop",
        *,
        io_timeout: timedelta = timedelta(seconds=1),
        max_concurrency: int = 1000,
        idempotent: bool = True,
    ) -> None:
        self.name = name
        self.idempotent = idempotent
        self.safe_retry_for = timedelta(days=1) if idempotent else None
        self.io_timeout = io_timeout
        self.max_concurrency = max_concurrency
        self.sent = 0
        self._is_open = False

    async def open(self) -> None:
        self._is_open = True

    async def send(self, message: Message) -> SendResult:
        if not self._is_open:
            raise RuntimeError("the channel is not open")
        self.sent += 1
        return SendResult("accepted", message.message_id, "250")

    async def send_keys(self, operation_keys: Sequence[str]) -> list[SendResult]:
        """A whole window at once (services.deliver.BulkChannel): nothing needs to be rendered."""
        if not self._is_open:
            raise RuntimeError("the channel is not open")
        self.sent += len(operation_keys)
        return [_ACCEPTED] * len(operation_keys)

    async def close(self) -> None:
        self._is_open = False

    async def verify(self) -> str:
        return f"{self.name}: reaches nobody"
