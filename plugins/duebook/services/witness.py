"""The witness: what was sent last, kept outside the database, so that a restore can't hide it.

A database that was put back to an earlier state can't know it: what it sent since is due in it
again. So each sender keeps one small object in a folder or bucket of its own, written after the
transaction of a window has committed and before the window's I/O. A database that does not know the
batch of an object, or knows it with fewer flushes, is behind, and nothing is sent from it until
`duebook restore accept`.

One object a sender, because windows of several senders commit in another order than they are
numbered; within one sender the order is the database's own. An object that the database knew before
a window committed says no more than the window's own one, and is removed after it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import uuid4

import psycopg
import structlog

from duebook.db.sql import query
from duebook.errors import RefusedError, WitnessAwayError

_log = structlog.get_logger(__name__)

_SUFFIX: Final = ".json"
_ACCEPTED: Final = "accepted"
_LISTINGS: Final = 20
_CHECK_EVERY: Final = 10.0


@dataclass(frozen=True, slots=True)
class Witnessed:
    """What one object says: the newest window that one sender was about to send.

    `runs` are the newest reconciliation runs, by provider account, whose notices it has sent;
    `newest_intent_id` is the highest intent among them. `at` is the database's clock.
    """

    environment: str
    sender: str
    batch_id: int
    token: str
    flush_no: int
    newest_intent_id: int
    runs: Mapping[str, int]
    at: datetime

    def to_json(self) -> dict[str, Any]:
        """The object as it is stored."""
        return {
            "environment": self.environment,
            "sender": self.sender,
            "batch_id": self.batch_id,
            "token": self.token,
            "flush_no": self.flush_no,
            "newest_intent_id": self.newest_intent_id,
            "runs": dict(self.runs),
            "at": self.at.isoformat(),
        }


class Store(Protocol):
    """Where the objects of one environment are kept. Every method may raise OSError."""

    def names(self) -> list[str]:
        """The objects that are there, newest knowledge of each sender."""
        ...

    def read(self, name: str) -> bytes | None:
        """One object; None when it has gone."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Store an object that is not there yet, durably, or not at all."""
        ...

    def remove(self, name: str) -> None:
        """Remove an object, there or not."""
        ...

    def archive(self, name: str) -> None:
        """Put an object aside, where it is not read again; there or not."""
        ...


class FolderStore:
    """A folder. An object appears by a rename and is on disk when write() returns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        try:
            found = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        return sorted(name for name in found if name.endswith(_SUFFIX))

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        unfinished = self._folder / f"{name}.unfinished"
        try:
            file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640)
        except FileNotFoundError:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640)
        try:
            os.write(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        unfinished.rename(self._folder / name)
        self._sync()

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def archive(self, name: str) -> None:
        place = self._folder / _ACCEPTED
        place.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            (self._folder / name).rename(place / name)

    def _sync(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class ObjectStore:
    """A bucket or any other place that fsspec has a driver for, by its URL."""

    def __init__(self, url: str) -> None:
        import fsspec

        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise OSError(str(error)) from error

    def names(self) -> list[str]:
        self._files.invalidate_cache(self._root)
        try:
            found = self._files.ls(self._root, detail=False)
        except FileNotFoundError:
            return []
        names = (str(path).rstrip("/").rpartition("/")[2] for path in found)
        return sorted(name for name in names if name.endswith(_SUFFIX))

    def read(self, name: str) -> bytes | None:
        try:
            content: bytes = self._files.cat_file(self._path(name))
        except FileNotFoundError:
            return None
        return content

    def write(self, name: str, content: bytes) -> None:
        self._files.makedirs(self._root, exist_ok=True)
        self._files.pipe_file(self._path(name), content)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._files.rm_file(self._path(name))

    def archive(self, name: str) -> None:
        content = self.read(name)
        if content is not None:
            folder = f"{self._root}/{_ACCEPTED}"
            self._files.makedirs(folder, exist_ok=True)
            self._files.pipe_file(f"{folder}/{name}", content)
            self.remove(name)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


class Witness:
    """The witness of one environment at `location`, a folder or a URL.

    Every failure of the place is an WitnessAwayError: what can't be proven is not sent.
    """

    def __init__(self, location: str, environment: str) -> None:
        self.location = location
        self.environment = environment
        with _reachable(location):
            self._store: Store = (
                ObjectStore(f"{location.rstrip('/')}/{environment}")
                if "://" in location
                else FolderStore(Path(location).expanduser() / environment)
            )

    def read(self) -> dict[str, Witnessed]:
        """Every object by its name. Raises WitnessAwayError; also for one that makes no sense."""
        with _reachable(self.location):
            for _ in range(_LISTINGS):
                contents = {name: self._store.read(name) for name in self._store.names()}
                # One that has gone was replaced by a newer one: the list is made again.
                if all(content is not None for content in contents.values()):
                    break
        return {
            name: self._parse(name, content)
            for name, content in contents.items()
            if content is not None
        }

    def _parse(self, name: str, content: bytes) -> Witnessed:
        try:
            document = json.loads(content)
            return Witnessed(
                environment=str(document["environment"]),
                sender=str(document["sender"]),
                batch_id=int(document["batch_id"]),
                token=str(document["token"]),
                flush_no=int(document["flush_no"]),
                newest_intent_id=int(document["newest_intent_id"]),
                runs={str(key): int(value) for key, value in document["runs"].items()},
                at=datetime.fromisoformat(document["at"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise WitnessAwayError(
                f"the witness {self.location} holds {self.environment}/{name}, which is no object "
                "of Duebook's: restore it, or remove it if you know what was sent"
            ) from None

    def write(self, name: str, content: Witnessed) -> None:
        """Store one object durably. Raises WitnessAwayError."""
        with _reachable(self.location):
            self._store.write(name, json.dumps(content.to_json()).encode())

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects that say nothing new; one that stays does no harm."""
        with contextlib.suppress(WitnessAwayError), _reachable(self.location):
            for name in names:
                self._store.remove(name)

    def archive(self, names: Sequence[str]) -> None:
        """Put objects aside that a person has accepted."""
        with _reachable(self.location):
            for name in names:
                self._store.archive(name)

    def try_out(self) -> None:
        """Write and remove a file. Raises WitnessAwayError when that can't be done."""
        name = f"doctor-{uuid4().hex}.probe"
        with _reachable(self.location):
            self._store.write(name, b"{}")
            self._store.remove(name)


@contextlib.contextmanager
def _reachable(location: str) -> Any:
    try:
        yield
    except WitnessAwayError:
        raise
    except Exception as error:  # drivers of object stores raise what they like
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise WitnessAwayError(
            f"the witness {location} can't be used ({type(error).__name__}: {reason}); "
            "nothing is sent without it"
        ) from error


@dataclass(frozen=True, slots=True)
class Lost:
    """An object whose window the database does not know. `known_flush_no` None: nor its batch."""

    name: str
    witnessed: Witnessed
    known_flush_no: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The database beside its witness, and since when its server runs."""

    known: dict[str, Witnessed]
    lost: list[Lost]
    server_started_at: datetime | None


def compare(conn: psycopg.Connection[Any], witness: Witness) -> Comparison:
    """Which objects the database knows, and which it does not: then it is behind."""
    # Read before the query: what stands in an object has committed by then.
    return compare_objects(conn, witness.read())


def compare_objects(conn: psycopg.Connection[Any], objects: Mapping[str, Witnessed]) -> Comparison:
    """The same for objects that were read already."""
    names = list(objects)
    row = conn.execute(
        query("compare_witness"),
        {
            "batch_ids": [objects[name].batch_id for name in names],
            "tokens": [objects[name].token for name in names],
            "flush_nos": [objects[name].flush_no for name in names],
        },
        prepare=True,
    ).fetchone()
    assert row is not None, "a select without from returns a row"
    lost = [
        Lost(names[ordinal - 1], objects[names[ordinal - 1]], known)
        for ordinal, known in row[1] or ()
    ]
    gone = {each.name for each in lost}
    known = {name: each for name, each in objects.items() if name not in gone}
    return Comparison(known, lost, row[0])


def behind(lost: Sequence[Lost]) -> RefusedError:
    """The one line that says that a database is behind, and what to do."""
    newest = max(lost, key=lambda each: each.witnessed.at).witnessed
    return RefusedError(
        "this database is behind its witness: it does not know what "
        f"{newest.sender} sent at {newest.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC "
        f"(batch {newest.batch_id}, flush {newest.flush_no}); was it restored? Look with "
        "`duebook restore accept --dry-run`, then run `duebook restore accept`"
    )


@dataclass(slots=True)
class Guard:
    """One sender's use of the witness: tests the database by it, and tells it each window."""

    witness: Witness
    sender: str
    boottime: Any
    _stem: str = ""
    _written: int = 0
    _own: dict[str, Witnessed] = field(default_factory=dict)
    _older: dict[str, Witnessed] = field(default_factory=dict)
    _runs: dict[str, int] = field(default_factory=dict)
    _newest_intent_id: int = 0
    _server_started_at: datetime | None = None
    _checked_at: float = float("-inf")

    def __post_init__(self) -> None:
        safe = re.sub(r"[^A-Za-z0-9_-]+", "-", self.sender)[:60]
        self._stem = f"{safe}.{uuid4().hex[:12]}"

    def check(self, conn: psycopg.Connection[Any]) -> None:
        """Compare with every object. Raises RefusedError when the database is behind."""
        objects = {**self.witness.read(), **self._own}
        found = compare_objects(conn, objects)
        if found.lost:
            raise behind(found.lost)
        self._server_started_at = found.server_started_at
        self._checked_at = self.boottime()
        # Whatever knows a window that commits from here on knows these too.
        self._older = {name: each for name, each in found.known.items() if name not in self._own}

    def check_again(self, conn: psycopg.Connection[Any]) -> None:
        """Before a claim: the own object, and all of them after a while or another server start."""
        found = compare_objects(conn, self._own)
        if found.lost:
            raise behind(found.lost)
        if (
            found.server_started_at != self._server_started_at
            or self.boottime() - self._checked_at > _CHECK_EVERY
        ):
            self.check(conn)

    def note_batch(self, conn: psycopg.Connection[Any], batch_id: int) -> None:
        """Remember which runs the notices of a batch come from."""
        for provider_account, run_id in conn.execute(
            query("list_batch_runs"), {"batch_id": batch_id}, prepare=True
        ):
            self._runs[provider_account] = max(run_id, self._runs.get(provider_account, 0))

    def tell(
        self, *, batch_id: int, token: str, flush_no: int, newest_intent_id: int, at: datetime
    ) -> None:
        """Write down a window that has committed, before its I/O. Raises WitnessAwayError."""
        older = self._older
        runs, newest = dict(self._runs), max(self._newest_intent_id, newest_intent_id)
        for each in older.values():
            newest = max(newest, each.newest_intent_id)
            for provider_account, run_id in each.runs.items():
                runs[provider_account] = max(run_id, runs.get(provider_account, 0))
        content = Witnessed(
            environment=self.witness.environment,
            sender=self.sender,
            batch_id=batch_id,
            token=token,
            flush_no=flush_no,
            newest_intent_id=newest,
            runs=runs,
            at=at,
        )
        self._written += 1
        name = f"{self._stem}.{self._written}{_SUFFIX}"
        self.witness.write(name, content)
        self.witness.remove([*self._own, *older])
        self._own, self._older = {name: content}, {}
        self._runs, self._newest_intent_id = runs, newest
