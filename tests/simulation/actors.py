"""Processes of the simulated world: real code in threads of which one at a time may move.

A thread hands the baton back at each of its steps (a round trip to the database, a send, a pause),
so the order of everything is the history's and never the machine's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal, cast

State = Literal["ready", "blocked", "done"]
Fault = Literal["lose_before", "lose_after", "fail_over"]
Stop = Callable[["Actor"], bool]

MOST_STEPS = 3000
_PATIENCE = 60.0


class CrashedError(BaseException):
    """The process is gone. Not an Exception: nothing may catch it and go on."""


class Actor(threading.Thread):
    """One process. `work` is real code; it calls step() wherever the world may interrupt it."""

    def __init__(self, name: str, work: Callable[[Actor], Any], *, offset: float = 0.0) -> None:
        super().__init__(name=name, daemon=True)
        self.state: State = "ready"
        self.result: Any = None
        self.error: BaseException | None = None
        self.fault: Fault | None = None
        self.wants_stop = False
        self.is_crashed = False
        self.is_endless = False
        self.statement: Any = None
        self.blocks = 0
        self.is_waiting_for_io = False
        self.offset = offset
        self.wires: list[Any] = []
        self.facts_read_at = 0
        self.seen: dict[str, Any] = {}
        self._work = work
        self._stop: Stop = lambda actor: True
        self._crash = False
        self._steps = 0
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)

    def run(self) -> None:
        self._take_baton()
        try:
            if not self._crash:
                self.result = self._work(self)
        except BaseException as error:
            if not is_crash(error):
                self.error = error
        finally:
            self.is_crashed = self._crash
            self.state = "done"
            self._back.release()

    @property
    def is_idle(self) -> bool:
        """Whether it stands between two transactions."""
        return not any(wire.is_in_transaction for wire in self.wires)

    def move(self, stop: Stop) -> None:
        """Let it go on until `stop` says so at one of its steps, it is blocked, or it ends."""
        if self.state == "done":
            return
        self._stop = stop
        if self.ident is None:
            self.start()
        self._go.release()
        if not self._back.acquire(timeout=_PATIENCE):
            raise TimeoutError(f"{self.name} neither moves nor waits")

    def crash(self) -> None:
        """As by SIGKILL at the step where it stands: its connections break, nothing else runs."""
        self._crash = True
        if self.ident is None:
            self.start()
        self.state = "ready"
        self._go.release()
        if not self._back.acquire(timeout=_PATIENCE):
            raise TimeoutError(f"{self.name} does not die")

    def step(self) -> None:
        """Called by the process: here the world may go on with another one, or end this one."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            self.is_endless = self._crash = True
        if self._crash:
            raise CrashedError
        if self._stop(self):
            self._give_baton()

    def block(self) -> None:
        """Called by the process: what it asked for waits for another one."""
        self.state = "blocked"
        self.blocks += 1
        self._give_baton()

    def take_fault(self) -> Fault | None:
        """The fault that was prepared for the next round trip."""
        fault, self.fault = self.fault, None
        return fault

    def _give_baton(self) -> None:
        self._back.release()
        self._take_baton()
        if self._crash:
            raise CrashedError

    def _take_baton(self) -> None:
        self._go.acquire()


def current() -> Actor | None:
    """The process that this code runs in; None in the world itself."""
    thread = threading.current_thread()
    return thread if isinstance(thread, Actor) else None


def is_crash(error: BaseException) -> bool:
    """Whether an error is a crash, or a group of nothing else."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_crash(each) for each in cast("tuple[BaseException, ...]", error.exceptions))
    return isinstance(error, CrashedError)


def after(steps: int) -> Stop:
    """Stop at the step after so many."""
    left = steps

    def stop(actor: Actor) -> bool:
        nonlocal left
        left -= 1
        return left < 0

    return stop


def when_idle(actor: Actor) -> bool:
    """Stop between two transactions."""
    return actor.is_idle


def never(actor: Actor) -> bool:
    """Go on to the end."""
    return False
