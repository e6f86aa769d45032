"""`duebook rollout drill`: from an old sender to Duebook and back, each key sent by one of the two.

Five nights in shadow, then live for a tenth of the accounts, back, and live for all. The old sender
is a process of its own with its own log (`duebook.drill.old_sender`), which asks before it sends:
before Duebook's night, after it, or at the same time; and the mode is changed between the two. Once
the old sender is killed between its answer and its send, and once a night is killed and run again.
What was sent is read from the two logs: the mail relay's and the old sender's.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

from rich.console import Console

from duebook.channels.base import message_id_for
from duebook.config import load_config
from duebook.drill import old_sender, relay
from duebook.drill.place import OPERATOR, DrillError, Place, end_process, prepared
from duebook.services.apply import apply_config
from duebook.services.check import check
from duebook.services.imports import import_contacts, import_ledger
from duebook.services.operate import sweep_due
from duebook.services.rollout import rollout_status
from duebook.settings import Settings

Order = Literal["old_first", "duebook_first", "together"]
Stage = Literal["shadow", "tenth", "all"]
Key = tuple[str, str]

ACCOUNTS: Final = 60
PER_NIGHT: Final = 40
_SEED: Final = 7
_BUCKETS_OF_A_TENTH: Final = 1000
_PATIENCE_S: Final = 120
_KILLED_AFTER_S: Final = 0.9
_STAGES: Final[dict[Stage, str]] = {
    "shadow": "",
    "tenth": '[cohorts.early]\nmode = "live"\npercent = 10\n',
    "all": '[cohorts.early]\nmode = "live"\npercent = 100\n',
}


@dataclass(frozen=True, slots=True)
class Night:
    """One night: who comes first, and the stage before and after the first of the two.

    `old_dies`, `run_dies`: that one is killed in it and started again.
    """

    order: Order
    stage: Stage
    then: Stage | None = None
    old_dies: bool = False
    run_dies: bool = False


NIGHTS: Final = (
    Night("old_first", "shadow"),
    Night("duebook_first", "shadow"),
    Night("together", "shadow", old_dies=True),
    Night("old_first", "shadow", run_dies=True),
    Night("together", "shadow"),
    # Taken in shadow, live before our night: theirs all the same.
    Night("old_first", "shadow", then="tenth"),
    Night("together", "tenth"),
    Night("duebook_first", "tenth", run_dies=True),
    Night("old_first", "tenth"),
    # Promised live, back in shadow before the old sender asks: ours all the same.
    Night("duebook_first", "tenth", then="shadow"),
    Night("together", "shadow"),
    Night("old_first", "shadow", then="all"),
    Night("together", "all", run_dies=True),
    Night("duebook_first", "all"),
)


@dataclass(slots=True)
class Rollout:
    """What the steps share."""

    place: Place
    console: Console
    stage: Stage | None = None
    started: float = field(default_factory=time.monotonic)
    files: list[Path] = field(default_factory=list)
    expected: dict[Key, str] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    _old: subprocess.Popen[str] | None = None

    def say(self, text: str) -> None:
        """One line with the seconds since the start."""
        seconds = time.monotonic() - self.started
        self.console.print(f"[dim]{seconds:5.0f} s[/dim]  {text}", highlight=False, soft_wrap=True)

    @property
    def log(self) -> Path:
        """What the old sender sent."""
        return self.place.folder / "old_sender.log"

    def enter(self, stage: Stage) -> None:
        """State the stage in duebook.toml and apply it, as an operator does."""
        if stage == self.stage:
            return
        path = self.place.folder / "duebook.toml"
        head = path.read_text(encoding="utf-8").split("# ---- rollout")[0]
        text = f"# ---- rollout\n[old_senders.{old_sender.SENDER}]\nasks = true\n{_STAGES[stage]}"
        path.write_text(head + text, encoding="utf-8")
        apply_config(self.place.connect, load_config(path), by=OPERATOR)
        self.stage = stage

    def command(self, *arguments: str) -> dict[str, Any]:
        """A command as somebody would type it; its document."""
        said, code = self.wait_for(self.begin(*arguments))
        if code not in (0, 1):
            raise DrillError(f"duebook {' '.join(arguments[:2])} ended with {code}: {said.strip()}")
        document: dict[str, Any] = json.loads(said)
        return document

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command."""
        return self.place.start("duebook.cli", *arguments, "--json")

    def wait_for(self, process: subprocess.Popen[str]) -> tuple[str, int]:
        """What it said, and its exit code."""
        said, _ = process.communicate(timeout=_PATIENCE_S)
        return said, process.returncode

    def begin_old(self, file: Path, *, dies: bool) -> None:
        """Let the old sender begin its night."""
        if self._old is None:
            self._old = self._start_old(die_after=0)
        if dies:
            end_process(self._old)
            self._old = self._start_old(die_after=PER_NIGHT // 4)
            for each in self.files[:-1]:
                self._tell_old(each)
        self._tell_old(file)

    def end_old(self, *, dies: bool) -> None:
        """Wait until it has asked for everything; one that was killed starts again."""
        assert self._old is not None, "it was begun"
        if dies:
            self._old.wait(_PATIENCE_S)
            if self._old.returncode == 0:
                raise DrillError("the old sender was to be killed and was not")
            self.kills += 1
            end_process(self._old)
            self._old = self._start_old(die_after=0)
            for each in self.files:
                self._tell_old(each)
                self._hear_old()
            return
        self._hear_old()

    def _start_old(self, die_after: int) -> subprocess.Popen[str]:
        url = self.place.settings.database_url
        assert url is not None, "a place has a database"
        return self.place.start(
            "duebook.drill.old_sender",
            old_sender.as_old_sender(url.get_secret_value()),
            str(self.place.folder / "ledger.csv"),
            str(self.log),
            str(die_after),
            stdin=subprocess.PIPE,
        )

    def _tell_old(self, file: Path) -> None:
        assert self._old is not None, "it was started"
        assert self._old.stdin is not None, "it takes commands"
        self._old.stdin.write(f"night {file}\n")
        self._old.stdin.flush()

    def _hear_old(self) -> None:
        assert self._old is not None, "it was started"
        assert self._old.stdout is not None, "it answers"
        line = self._old.stdout.readline()
        if not line:
            raise DrillError("the old sender ended: see processes.log")
        self.answers.update(json.loads(line))


def run_rollout_drill(
    settings: Settings, console: Console, *, keep: bool = False
) -> dict[str, Any]:
    """Run it in a database of its own, which `keep` leaves there.

    Returns `{nights, keys, sent_by_duebook, sent_by_old_sender, lost, doubled, wrong, kills,
    answers, comparison, violations, ok}`. Raises DrillError when a step did not come to its end.
    """
    started = time.monotonic()
    with rolled_out(settings, console, keep=keep) as rollout:
        document = judge(rollout)
    document["seconds"] = round(time.monotonic() - started, 1)
    if keep:
        document["home"] = str(rollout.place.folder)
    return document


@contextlib.contextmanager
def rolled_out(settings: Settings, console: Console, *, keep: bool = False) -> Iterator[Rollout]:
    """A rollout that has happened; nothing is compared yet."""
    console.print("making a database, an SMTP server and an old sender", highlight=False)
    with prepared(settings, "http://127.0.0.1:9", [], keep=keep) as place:
        rollout = Rollout(place, console)
        (clock,) = place.rows("read_clock")
        write_books(place, clock["now"])
        make_shadow(place)
        rollout.enter("shadow")
        for number, night in enumerate(NIGHTS, start=1):
            happen(rollout, number, night, clock["now"])
        yield rollout


def write_books(place: Place, now: datetime) -> None:
    """Every payment of every night is booked, and everybody can be told."""
    ledger, contacts = place.folder / "ledger.csv", place.folder / "contacts.csv"
    drawn = random.Random(_SEED)
    names = "account_id payment_id reference amount_minor currency status expected_at".split()
    with ledger.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*names, "provider_account"])
        for number in range(len(NIGHTS) * PER_NIGHT):
            account = f"acc{drawn.randrange(ACCOUNTS):02}"
            expected_at = (now + timedelta(days=1)).isoformat()
            payment = (account, f"p{number}", f"order:{number}", 1000, "EUR", "captured")
            writer.writerow([*payment, expected_at, "night"])
    with contacts.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["account_id", "channel", "address", "zone"])
        for number in range(ACCOUNTS):
            name = f"acc{number:02}"
            writer.writerow([name, "email", f"{name}@customers.invalid", "UTC"])
    import_ledger(place.connect, ledger, place.config)
    import_contacts(place.connect, contacts)


def make_shadow(place: Place) -> None:
    """The provider account of the drill begins in shadow."""
    path = place.folder / "duebook.toml"
    text = path.read_text(encoding="utf-8")
    head, mark, rest = text.partition("[provider_accounts.night]\n")
    path.write_text(head + mark + rest.replace('"live"', '"shadow"', 1), encoding="utf-8")


def happen(rollout: Rollout, number: int, night: Night, now: datetime) -> None:
    """One night, and what has to come of each of its keys."""
    rollout.enter(night.stage)
    file = write_night(rollout.place, number, now)
    rollout.files.append(file)
    if night.order == "old_first":
        _old_night(rollout, file, night)
        rollout.enter(night.then or night.stage)
        _our_night(rollout, file, night)
    elif night.order == "duebook_first":
        _our_night(rollout, file, night)
        rollout.enter(night.then or night.stage)
        _old_night(rollout, file, night)
    else:
        rollout.begin_old(file, dies=night.old_dies)
        _our_night(rollout, file, night)
        rollout.end_old(dies=night.old_dies)
    sweep_due(rollout.place.connect, rollout.place.settings, connections=rollout.place.connection)
    expect_night(rollout, number, night)
    then = f", then {night.then}" if night.then else ""
    killed = "; one of them is killed" if night.old_dies or night.run_dies else ""
    rollout.say(f"night {number}: {night.stage}{then}, {night.order.replace('_', ' ')}{killed}")


def _old_night(rollout: Rollout, file: Path, night: Night) -> None:
    rollout.begin_old(file, dies=night.old_dies)
    rollout.end_old(dies=night.old_dies)


def _our_night(rollout: Rollout, file: Path, night: Night) -> None:
    command = ("reconcile", "--account", "night", "--file", str(file))
    if night.run_dies:
        doomed = rollout.begin(*command)
        with contextlib.suppress(subprocess.TimeoutExpired):
            doomed.wait(_KILLED_AFTER_S)
        doomed.kill()
        doomed.wait()
        rollout.kills += 1
    rollout.command(*command)


def write_night(place: Place, number: int, now: datetime) -> Path:
    """The provider's file of a night."""
    path = place.folder / f"night-{number:02}.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow("entry type amount reference currency occurred".split())
        for payment in _payments_of(number):
            at = now.isoformat()
            writer.writerow([f"E:{payment}", "charge", "10.00", f"order:{payment}", "EUR", at])
    return path


def _payments_of(number: int) -> range:
    return range((number - 1) * PER_NIGHT, number * PER_NIGHT)


def expect_night(rollout: Rollout, number: int, night: Night) -> None:
    """Whose each key of a night has to be, by what happened in which order."""
    with (rollout.place.folder / "ledger.csv").open(encoding="utf-8", newline="") as stream:
        accounts = {row["payment_id"]: row["account_id"] for row in csv.DictReader(stream)}
    for payment in _payments_of(number):
        account = accounts[f"p{payment}"]
        key = f"payment_settled:email:night:p{payment}:E%3A{payment}:v1"
        rollout.expected[account, key] = "duebook" if _is_ours(account, night) else "old sender"


def _is_ours(account: str, night: Night) -> bool:
    """The old sender takes what it asks for in shadow; else the mode of our night decides."""
    ours_at = night.then or night.stage if night.order == "old_first" else night.stage
    if night.order == "old_first" and not _is_live(account, night.stage):
        return False
    return _is_live(account, ours_at)


def _is_live(account: str, stage: Stage) -> bool:
    if stage == "tenth":
        return bucket("early", account) < _BUCKETS_OF_A_TENTH
    return stage == "all"


def bucket(cohort: str, account: str) -> int:
    """The place of an account in a cohort by share, counted as docs/rollout.md publishes it."""
    digest = hashlib.md5(f"{cohort}:{account}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) % 10_000


def judge(rollout: Rollout) -> dict[str, Any]:
    """Both logs beside what has to be."""
    place = rollout.place
    sender = place.config.channels["email"].sender
    theirs = old_sender.sent(rollout.log)
    mails = relay.taken(place.relay_log)
    ours = {key: mails[message_id_for(*key, sender)] for key in rollout.expected}
    wrong = [
        f"{account} {key}: {owner}; Duebook sent {ours[account, key]}, the old sender "
        f"{theirs[account, key]}"
        for (account, key), owner in rollout.expected.items()
        if (ours[account, key], theirs[account, key]) != ((1, 0) if owner == "duebook" else (0, 1))
    ]
    sends = [ours[key] + theirs[key] for key in rollout.expected]
    strays = set(theirs) - set(rollout.expected)
    violations = check(place.connect)["violations"]
    nights = rollout_status(place.connect, limit=100)["nights"]
    document = {
        "nights": len(NIGHTS),
        "keys": len(rollout.expected),
        "sent_by_duebook": sum(ours.values()),
        "sent_by_old_sender": sum(theirs.values()),
        "lost": sends.count(0),
        "doubled": sum(each > 1 for each in sends) + sum(mails.values()) - sum(ours.values()),
        "wrong": wrong + [f"{account} {key}: no such key" for account, key in sorted(strays)],
        "kills": rollout.kills,
        "answers": dict(rollout.answers),
        "comparison": _summed(nights),
        "violations": violations,
    }
    document["ok"] = not (document["wrong"] or violations or _is_compared_wrongly(document))
    return document


def _summed(nights: Sequence[dict[str, Any]]) -> dict[str, int]:
    names = ("both", "only_ours", "only_theirs", "earlier", "later", "waiting", "doubled")
    return {name: sum(night[name] for night in nights) for name in names}


def _is_compared_wrongly(document: dict[str, Any]) -> bool:
    """In `rollout_comparison` a key of the old sender's is on both sides, one of ours on one."""
    compared = document["comparison"]
    told = (compared["both"], compared["only_ours"])
    odd = sum(count for name, count in compared.items() if name not in ("both", "only_ours"))
    return bool(odd) or told != (document["sent_by_old_sender"], document["sent_by_duebook"])
