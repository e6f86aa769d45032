"""After a resume: one sender here if asked, and the backlog falling until it is clear."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from duebook.db.connect import Connect
from duebook.errors import DuebookError
from duebook.services.incident import Sample, read_sample, store_samples, watch
from duebook.services.sweep import SweepReport

# One sweep with the test of whether to stop, which it asks between messages.
SweepOnce = Callable[[Callable[[], bool]], SweepReport]

# A sweep takes along what falls due while it runs; what is paced falls due in between.
_REST_S: Final = 5.0
_COUNTED: Final = ("claimed", "sent", "done", "deferred", "expired", "unknown", "held")


@dataclass(slots=True)
class Followed:
    """What was seen. `is_interrupted`: somebody stopped looking. `here`: what this process did."""

    samples: list[Sample] = field(default_factory=list)
    is_interrupted: bool = False
    here: dict[str, int] | None = None

    @property
    def is_clear(self) -> bool:
        """Whether the backlog was clear when last looked at."""
        return bool(self.samples) and self.samples[-1].is_clear

    def to_json(self) -> dict[str, Any]:
        """`{cleared, interrupted, here, samples}`."""
        return {
            "cleared": self.is_clear,
            "interrupted": self.is_interrupted,
            "here": self.here,
            "samples": [sample.to_json() for sample in self.samples],
        }


class SenderHere:
    """A sender in a thread of this process: sweep after sweep until it is told to stop.

    Leaving the context stops it: what is in flight is finished and flushed, the rest is given back.
    Raises then what ended it early.
    """

    def __init__(self, sweep_once: SweepOnce) -> None:
        self._sweep_once = sweep_once
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="sender here")
        self.counts = dict.fromkeys(_COUNTED, 0)

    def __enter__(self) -> SenderHere:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    @property
    def has_failed(self) -> bool:
        """Whether it ended by itself, with an error."""
        return self._error is not None

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                document = self._sweep_once(self._stop.is_set).to_json()
                for name in _COUNTED:
                    self.counts[name] += document[name]
                self._stop.wait(_REST_S)
        except Exception as error:  # raised again where the sender is left
            self._error = error


def follow(
    connect: Connect,
    incident_id: int,
    *,
    every: timedelta,
    longest: timedelta | None,
    show: Callable[[Sample], None],
    sweep_once: SweepOnce | None = None,
) -> Followed:
    """Watch the backlog until it is clear, `longest` has passed, or Ctrl-C; keeps the curve.

    Raises what ended the sender here, after the curve was kept.
    """
    seen = Followed()
    sender = None if sweep_once is None else SenderHere(sweep_once)
    pause = threading.Event()

    def should_stop(seconds: float) -> bool:
        pause.wait(seconds)
        return sender is not None and sender.has_failed

    def look() -> None:
        try:
            for sample in watch(
                connect, incident_id, every=every, longest=longest, should_stop=should_stop
            ):
                seen.samples.append(sample)
                show(sample)
        except KeyboardInterrupt:
            seen.is_interrupted = True

    try:
        if sender is None:
            look()
        else:
            with sender:
                look()
    finally:
        if sender is not None:
            seen.here = sender.counts
            _look_once_more(connect, incident_id, seen, show)
        store_samples(connect, incident_id, seen.samples)
    return seen


def _look_once_more(
    connect: Connect, incident_id: int, seen: Followed, show: Callable[[Sample], None]
) -> None:
    """What the sender finished after it was told to stop."""
    if seen.is_clear:
        return
    try:
        with connect() as conn:
            sample = read_sample(conn, incident_id)
    except DuebookError:
        return
    seen.samples.append(sample)
    show(sample)
