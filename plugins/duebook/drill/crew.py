"""The queue and its workers: sender tasks are handed over to real processes, some of them twice."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from duebook.drill.place import PROCESS_LOG, DrillError, Place
from duebook.drill.worker import Task

_PATIENCE_S: Final = 20.0
_TWICE_EVERY: Final = 10


@dataclass(slots=True)
class Handed:
    """What came of one wave: reports, tasks that were handed over twice, workers that died."""

    reports: list[dict[str, Any]] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    died: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def total(self, name: str) -> int:
        """The sum of one count of every report."""
        return sum(int(report[name]) for report in self.reports)


class Worker:
    """One worker process. It carries one task at a time."""

    def __init__(self, place: Place) -> None:
        self._process = place.start("duebook.drill.worker", stdin=subprocess.PIPE)

    @property
    def is_alive(self) -> bool:
        """Whether it can be handed a task."""
        return self._process.poll() is None

    def carry(self, task: Task) -> dict[str, Any] | None:
        """Hand over one task and wait for it. None: the worker died of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task.to_json()) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            return None
        report: dict[str, Any] = json.loads(line)
        return report

    @property
    def was_killed(self) -> bool:
        """Whether it ended by SIGKILL."""
        return self._process.returncode == -9

    def end(self) -> None:
        """Let it end, or end it."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Crew:
    """Some workers, and the tasks that were handed to them."""

    def __init__(self, place: Place, size: int) -> None:
        self._workers = [Worker(place) for _ in range(size)]
        self.handed = 0

    def hand_over(self, tasks: Sequence[Task], *, may_die: bool = False) -> Handed:
        """Carry tasks by all living workers; every tenth of them is handed over twice.

        Raises DrillError when a worker ends that was not to die.
        """
        result, waiting = Handed(), queue.SimpleQueue[Task]()
        for task in tasks:
            self.handed += 1
            waiting.put(task)
            if self.handed % _TWICE_EVERY == 0:
                waiting.put(task)
                result.twice.append(task.sender)
        living = [worker for worker in self._workers if worker.is_alive]
        threads = [
            threading.Thread(target=self._serve, args=(worker, waiting, result))
            for worker in living[: len(tasks) + len(result.twice)]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if result.failures or (result.died and not may_die):
            ended_at = (result.failures or result.died)[0]
            raise DrillError(f"a worker ended at {ended_at}; with --keep, {PROCESS_LOG} says why")
        return result

    def _serve(self, worker: Worker, waiting: queue.SimpleQueue[Task], result: Handed) -> None:
        while True:
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                return
            report = worker.carry(task)
            if report is None:
                died = worker.was_killed and task.dies != "never"
                (result.died if died else result.failures).append(task.sender)
                return
            result.reports.append(report)

    def end(self) -> None:
        """End every worker."""
        for worker in self._workers:
            worker.end()
