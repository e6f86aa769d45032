"""`duebook drill`: an outage and the way back, with an expected result for every key.

The sweep is paused for 37 minutes while holds end and reminders come due; then one trigger lets it
go on, among tasks and flushes that are delivered twice and workers that are killed. Everything is
the product's own: the claim, the gate, senders as processes, a real SMTP server, the receiver, the
incident. Only what had happened before is written backdated (see `duebook.drill.history`).
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import psycopg
from rich.console import Console

from duebook.channels.relay_log import RelayLog
from duebook.drill import history, provider, relay
from duebook.drill.crew import Crew, Handed
from duebook.drill.expected import SETTLED, Expected, Verdict, in_doubt_as_expected, judge
from duebook.drill.outside import Outside, refused_commands
from duebook.drill.place import OPERATOR, DrillError, Place, prepared
from duebook.drill.worker import Task
from duebook.drill.zone import zones_of
from duebook.services import incident, operate
from duebook.services.check import check
from duebook.services.explain import explain
from duebook.services.look_up import look_up_doubts
from duebook.settings import Settings

INCIDENT: Final = "drill"
_BAND: Final = timedelta(minutes=5)
_WORKERS: Final = 4
_SENDERS: Final = 10
_DOOMED_CLAIM: Final = 12
_DOOMED_BATCH: Final = 40
_WINDOW: Final = 16
_DIES_AFTER: Final = _WINDOW + 6
_MOST_TICKS: Final = 30
_SHORTEST_TICK_S: Final = 1.0
_READERS: Final = 4
_PATIENCE_S: Final = 120.0
_POLL_S: Final = 0.1


@dataclass(slots=True)
class Drill:
    """What the steps share."""

    place: Place
    crew: Crew
    console: Console
    now: datetime
    outside: Outside
    started: float = field(default_factory=time.monotonic)
    table: list[Expected] = field(default_factory=list)
    flushes_twice: int = 0
    tasks_twice: int = 0
    ticks: int = 0
    doubtful: int = 0
    samples: list[incident.Sample] = field(default_factory=list)

    def say(self, text: str) -> None:
        """One line with the seconds since the start."""
        self.console.print(
            f"[dim]{time.monotonic() - self.started:5.0f} s[/dim]  {text}",
            emoji=False,
            soft_wrap=True,
            highlight=False,
        )

    def hand_over(self, tasks: Sequence[Task], *, may_die: bool = False) -> Handed:
        """Sender tasks, carried by the workers; counts what came twice."""
        handed = self.crew.hand_over(tasks, may_die=may_die)
        self.flushes_twice += handed.total("doubled")
        self.tasks_twice += len(handed.twice)
        return handed

    def tick(self) -> Handed:
        """What the minute's run does by cron: one sender, nobody has woken it."""
        self.ticks += 1
        return self.hand_over([Task(f"minute-{self.ticks}")])

    def clock(self) -> dict[str, Any]:
        """The database's clock, what leases go on, when the next row is due."""
        return self.place.rows("read_drill_clock")[0]

    def sample(self, incident_id: int) -> None:
        """Look how far the backlog has fallen, for the report."""
        with self.place.connect() as conn:
            self.samples.append(incident.read_sample(conn, incident_id))

    @property
    def mail_sender(self) -> str | None:
        """Whose domain a Message-ID has."""
        return self.place.config.channels["email"].sender


def run_drill(settings: Settings, console: Console, *, keep: bool = False) -> dict[str, Any]:
    """Run it in a database of its own, which `keep` leaves there.

    Returns the document of `duebook drill --json`; `ok` says whether every key is as expected.
    Raises DrillError when a step did not come to what it is to show.
    """
    started = time.monotonic()
    with drilled(settings, console, keep=keep) as (drill, report):
        document = conclude(drill, report)
    document["seconds"] = round(time.monotonic() - started, 1)
    if keep:
        document["home"] = str(drill.place.folder)
        document["database"] = drill.place.database
    return document


@contextlib.contextmanager
def drilled(
    settings: Settings, console: Console, *, keep: bool = False
) -> Iterator[tuple[Drill, dict[str, Any]]]:
    """A drill that has happened, and the report of its incident; nothing is compared yet."""
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        shop = stack.enter_context(provider.serving())
        put_off = [history.address(history.RETRIED)]
        console.print("making a database, an SMTP server, a provider and workers", highlight=False)
        place = stack.enter_context(prepared(settings, shop.address, put_off, keep=keep))
        crew = Crew(place, _WORKERS)
        stack.callback(crew.end)
        outside = stack.enter_context(Outside(place, shop))
        (clock,) = place.rows("read_clock")
        drill = Drill(place, crew, console, next(iter(clock.values())), outside, started)
        yield drill, happen(drill)


def happen(drill: Drill) -> dict[str, Any]:
    """Everything between the first try and the close of the incident; returns its report."""
    with zones_of(drill.place.zones):
        first_try(drill)
        outage(drill)
        freeze(drill)
        preview(drill)
        incident_id = resume(drill)
        night(drill)
        drill.sample(incident_id)
        incident.store_samples(drill.place.connect, incident_id, drill.samples)
        report = incident.close_incident(drill.place.connect, INCIDENT, by=OPERATOR)
    drill.say("the incident is closed" if not report["refused"] else "closing it is refused")
    return report


def first_try(drill: Drill) -> None:
    """A payment is missing, and its notice is put off by the receiving side before the outage."""
    place, now = drill.place, drill.now
    history.book(place, now)
    drill.table += history.expect_payments(now)
    reconcile(drill, "shop")
    handed = drill.tick()
    expect(handed.total("deferred") == 1, "the notice of the missing payment met no 451")
    drill.say("a notice is put off by the relay with 451, and is back in due for a retry")
    retried = place.rows("backdate_retry", due_at=now - history.PAUSED_FOR + history.RETRIED_AFTER)
    expect(len(retried) == 1, "the notice that was put off is not due again")
    old = history.write_settlements(place, now, [history.OLD], "old.csv")
    reconcile(drill, "night", old)
    place.rows("backdate_intents", kind="payment_settled", notify_at=now - history.OLD_FOR)


def outage(drill: Drill) -> None:
    """The incident, 37 minutes ago, and what came due since."""
    place, now = drill.place, drill.now
    drill.table += history.put_reminders(place, now)
    incident.open_incident(
        place.connect,
        name=INCIDENT,
        reason="a drill: the sweeps stand still",
        band=_BAND,
        pauses_sweep=True,
        by=OPERATOR,
    )
    place.rows("backdate_incident", opened_at=now - history.PAUSED_FOR)
    drill.table += history.write_holds(place, now)
    paused = drill.hand_over([Task("paused")])
    expect(
        paused.reports[0]["paused"] == INCIDENT and paused.total("claimed") == 0,
        "a sweep claimed while the incident paused it",
    )
    drill.say(
        f"incident {INCIDENT} has paused the sweeps for 37 minutes: {history.HOLDS} holds have "
        "ended, 18 weekly reminders have come due, 4 of them in a DST gap"
    )


def freeze(drill: Drill) -> None:
    """Manual replay is refused, while webhooks come in and are read by schedule."""
    place = drill.place
    with refused_commands(place) as refusals:
        answers = [drill.outside.settle(1, history.RETRIED, drill.now)]
        told = drill.outside.settle(2, history.TOLD, drill.now)
        answers += [told, drill.outside.post_again()]
        expect(answers == [200, 200, 200], f"the receiver answered {answers}")
        counts = place.rows("count_effects")[0]
        expect(counts["receipts"] == 2, f"{counts['receipts']} receipts of two events")
        events = operate.read_provider_events(
            place.connect, place.settings, triggered_by="schedule", connections=place.connection
        )
        expect(events.intents == 2, f"{events.intents} notices of two settled payments")
    for command, code, said in refusals():
        expect(
            code == 2 and f"incident {INCIDENT} is open" in said,
            f"`duebook {command}` was not refused while the incident is open (exit {code})",
        )
        drill.say(f"`duebook {command}` is refused: incident {INCIDENT} is open")
    counts = place.rows("count_effects")[0]
    expect(
        (counts["receipts"], counts["effects"], counts["pending"]) == (2, 2, 0),
        f"two events came to {counts['effects']} effects",
    )
    drill.say("3 webhooks for 2 events: 2 receipts, 2 effects; the provider has settled meanwhile")


def preview(drill: Drill) -> None:
    """What a resume would do has to be what is expected of all that is due."""
    place = drill.place
    told = operate.preview_resume(place.connect, place.settings, connections=place.connection)
    wanted = Counter(one.result for one in drill.table if one.group != SETTLED)
    later, expire = sum(told["defer"].values()), sum(told["expire"].values())
    found = Counter(done=told["internal"], sent=told["send"] + later, expired=expire)
    expect(found == wanted, f"the preview says {dict(found)}, expected was {dict(wanted)}")
    drill.say(
        f"the preview: of {told['due']} due, {told['internal']} holds expire, "
        f"{told['send'] + later} are sent, {expire} expires unsent"
    )


def resume(drill: Drill) -> int:
    """One trigger lets it go on; a worker dies after its claim, one task comes twice.

    Returns the incident's number.
    """
    place = drill.place
    done = incident.resume_incident(place.connect, INCIDENT, by=OPERATOR)
    expect(done["resumed"] and done["calendar"] is None, "the incident was not resumed")
    incident_id = int(done["incident_id"])
    drill.sample(incident_id)
    doomed = Task("doomed-claim", batch_size=_DOOMED_CLAIM, dies="after_claim")
    dead = drill.hand_over([doomed], may_die=True)
    held = place.rows("read_last_window", sender=doomed.sender)
    expect(bool(dead.died and held), "the first worker did not die after its claim")
    drill.say(f"one trigger, asset wake off; a worker is killed after its claim of {len(held)}")
    drill.sample(incident_id)
    tasks = [Task(f"sender-{number:02}") for number in range(1, _SENDERS + 1)]
    wave = drill.hand_over(tasks)
    expect(bool(wave.twice), "no sender task was handed over twice")
    rows = place.rows("list_drill_keys")
    drill.say(
        f"{_SENDERS} sender tasks, {', '.join(wave.twice)} handed over twice: "
        f"{ended(rows, 'hold_expiry', 'done')} holds expired, {wave.total('sent')} notices sent"
    )
    drill.sample(incident_id)
    return incident_id


def night(drill: Drill) -> None:
    """A batch of settlement notices, made for a worker that is killed in mid-window."""
    place = drill.place
    names = [f"night-{number:03}" for number in range(1, history.SETTLED + 1)]
    reconcile(drill, "night", history.write_settlements(place, drill.now, names, "night.csv"))
    doomed = Task(
        "doomed-window",
        batch_size=_DOOMED_BATCH,
        window_messages=_WINDOW,
        dies="in_window",
        dies_after=_DIES_AFTER,
    )
    dead = drill.hand_over([doomed], may_die=True)
    rows = place.rows("read_last_window", sender=doomed.sender)
    window = [(row["account_id"], row["operation_key"]) for row in rows if row["is_in_window"]]
    expect(bool(dead.died and window), "the second worker did not die in a window")
    drill.say(
        f"the night's run makes {history.SETTLED} settlement notices; a worker that has claimed "
        f"{len(rows)} is killed in a window of {len(window)}"
    )
    drill.tick()
    until(lambda: drill.clock()["leased_s"] <= 0, "a lease does not end")
    rescue = drill.tick()
    expect(rescue.total("rescued") == 2, f"{rescue.total('rescued')} batches rescued, not 2")
    doubtful = place.rows("list_doubtful_keys")
    found = {(row["account_id"], row["operation_key"]) for row in doubtful}
    drill.doubtful = len(doubtful)
    expect(found == set(window), "what is in doubt is not the window of the killed worker")
    drill.say(f"both leases have ended: 2 batches rescued, {len(doubtful)} notices unknown")
    drill.table = in_doubt_as_expected(
        drill.table, window, relay.taken(place.relay_log), drill.mail_sender
    )
    look_up(drill, doubtful)
    for _ in range(_MOST_TICKS):
        drill.tick()
        wait_s = drill.clock()["next_due_s"]
        if wait_s is None or wait_s > _PATIENCE_S:
            break
        time.sleep(max(_SHORTEST_TICK_S, wait_s))


def look_up(drill: Drill, doubtful: Sequence[dict[str, Any]]) -> None:
    """Ask the receiving side's log about what is in doubt, as housekeeping does."""
    place = drill.place
    log = RelayLog(place.relay_log, known_within=relay.KNOWN_WITHIN)
    counts: Counter[str] = Counter()

    def is_answered() -> bool:
        looked_up = look_up_doubts(
            place.connect, {"email": log}, {"email": drill.mail_sender}, most=1000
        )
        counts.update(sent=looked_up.sent, due=looked_up.due)
        return counts.total() >= len(doubtful)

    until(is_answered, "the relay's log does not tell what is in doubt")
    drill.say(
        f"the relay's log knows {counts['sent']} of them, which are sent; "
        f"{counts['due']} it never took, and they are due again"
    )


def compare(drill: Drill) -> Verdict:
    """Every key beside what is expected of it."""
    rows = drill.place.rows("list_drill_keys")
    mails = relay.taken(drill.place.relay_log)
    return judge(drill.table, rows, mails, drill.mail_sender)


def conclude(drill: Drill, report: dict[str, Any]) -> dict[str, Any]:
    """Compare every key, prove the invariants, tell every story: the document of the drill."""
    place = drill.place
    verdict = compare(drill)
    rows = place.rows("list_drill_keys")
    violations = check(place.connect)["violations"]
    untold = unexplained(place, drill.table)
    is_ok = not (verdict.wrong or violations or untold or report["refused"])
    return {
        "ok": is_ok,
        "lost": verdict.lost,
        "doubled": verdict.doubled,
        "in_doubt": len(place.rows("list_doubtful_keys")),
        "holds_expired": ended(rows, "hold_expiry", "done"),
        "reminders_sent": ended(rows, "reminder", "sent"),
        "explained": len(drill.table) - len(untold),
        "catch_up": caught_up(place),
        "keys": len(drill.table),
        "were_in_doubt": drill.doubtful,
        "tasks_twice": drill.tasks_twice,
        "flushes_twice": drill.flushes_twice,
        "table": [line.to_json() for line in verdict.lines],
        "expected": [one.to_json() for one in drill.table],
        "wrong": [each.to_json() for each in verdict.wrong],
        "violations": violations,
        "untold": untold,
        "report": report,
    }


def ended(rows: Sequence[dict[str, Any]], kind: str, result: str) -> int:
    """How many keys of a kind ended so."""
    return sum(1 for row in rows if row["kind"] == kind and row["result"] == result)


def caught_up(place: Place) -> dict[str, dict[str, int]]:
    """What the catch-up policies decided: `{kind: {verdict: keys}}`."""
    found: dict[str, dict[str, int]] = {}
    for row in place.rows("count_catch_up"):
        found.setdefault(row["kind"], {})[row["verdict"]] = row["number"]
    return found


def unexplained(place: Place, table: Sequence[Expected]) -> list[str]:
    """Keys of which `explain` does not tell how they came to their end."""
    parts = [table[start::_READERS] for start in range(_READERS)]
    with ThreadPoolExecutor(_READERS) as readers:
        return [key for keys in readers.map(partial(_untold, place), parts) for key in keys]


def _untold(place: Place, table: Sequence[Expected]) -> list[str]:
    """The same by one connection, since a story takes less time than to connect."""
    with place.connect() as conn:

        @contextlib.contextmanager
        def lent() -> Iterator[psycopg.Connection[Any]]:
            yield conn

        return [
            one.operation_key
            for one in table
            if not is_complete(explain(lent, one.operation_key).to_json(), one)  # type: ignore[arg-type]
        ]


def is_complete(story: dict[str, Any], one: Expected) -> bool:
    """Whether a story tells of a key its promise, its attempts, and how and why it ended."""
    for match in story["matches"]:
        if match["account_id"] != one.account_id or match["match"] != "operation_key":
            continue
        told = {
            each["event"]
            for each in match["events"]
            if each.get("operation_key") == one.operation_key
        }
        said = " ".join(answer["text"] for answer in match["answers"])
        return (
            match["facts"]["state"] == one.result
            and (match["facts"]["reason"] or "") == one.reason
            and {"intent", "attempt", "result", "outcome"} <= told
            and (one.tells in said)
        )
    return False


def reconcile(drill: Drill, account: str, *files: Any) -> None:
    """A reconciliation run, as the nightly DAG's schedule starts it."""
    place = drill.place
    operate.reconcile_account(
        place.connect,
        place.settings,
        account=account,
        files=files,
        triggered_by="schedule",
        connections=place.connection,
    )


def until(condition: Callable[[], bool], failure: str) -> None:
    """Wait for a condition. Raises DrillError when it does not come about in time."""
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() >= deadline:
            raise DrillError(failure)
        time.sleep(_POLL_S)


def expect(holds: bool, failure: str) -> None:
    """Raise DrillError when a step did not come to what it is to show."""
    if not holds:
        raise DrillError(failure)
