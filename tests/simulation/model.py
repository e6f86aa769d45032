"""What must be true, in plain Python: a pure model that knows nothing of tables or statements.

It is told what was promised, what people asked for, what a sender was shown, what the provider took
and where the database says that each key stands, and raises Violation where these can't all be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

ENDS = ("sent", "done", "expired")
HELD_CAUSES = frozenset(
    {"no_contact", "no_consent", "template", "zone_unknown", "kind_unknown", "paused", "poison"}
    | {"attempt_conflict", "rescue_failed", "environment", "gate_failed"}
)


class ViolationError(AssertionError):
    """Something that must never be."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a key stands: its places (one, if all is well), the cause there, and its outcome."""

    account: str
    places: tuple[str, ...]
    cause: str | None
    outcome: str | None
    reason: str | None
    ended_at_attempt: int | None
    known_sent: int
    is_overdue: bool


@dataclass(frozen=True, slots=True)
class Window:
    """What one sender could know when its window opened: what had ended or was to, what waits."""

    ended: frozenset[str]
    asked: frozenset[str]
    known: frozenset[str]
    paused: frozenset[str]


@dataclass(slots=True)
class Hold:
    """A reservation: the answers that were given to those who asked for it."""

    ends_at: float
    answers: set[str] = field(default_factory=set)


# What a hold can't have been told to be as well.
_EXCLUDES = (
    ({"confirmed"}, {"expired", "reheld", "refund", "cancelled in time"}),
    ({"reheld"}, {"refund", "confirmed"}),
)
_IN_TIME = {"confirmed", "cancelled in time", "reheld in time"}
# Of a daily schedule, with a horizon of seven days.
WRITTEN_AHEAD = 6
_CLOCK_TOLERANCE = 20.0


@dataclass(slots=True)
class Model:
    """The reference: told of each event, it notes what can't be in `faults`."""

    account_of: dict[str, str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    silenced: set[str] = field(default_factory=set)
    accepted: Counter[str] = field(default_factory=Counter)
    pardoned: Counter[str] = field(default_factory=Counter)
    vouched: set[str] = field(default_factory=set)
    standing: Mapping[str, Standing] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    schedules: dict[str, list[str] | None] = field(default_factory=dict)
    pauses: set[tuple[str, str]] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def fail(self, fault: str) -> None:
        """Note what must never be."""
        self.faults.append(fault)

    def ask_to_end(self, key: str, is_promised: bool = True) -> None:
        """Somebody was answered that this key will be ended (or that it has)."""
        if is_promised:
            self.asked.add(key)

    def cancel_schedule(self, name: str) -> None:
        """Somebody was answered that a schedule reminds no more."""
        self.asked |= set(self._occurrences(name))
        self.schedules[name] = self._occurrences(name)

    def put_schedule(self, name: str) -> None:
        """Somebody was answered that a schedule reminds daily from now on."""
        self.schedules.setdefault(name, None)

    def _occurrences(self, name: str) -> list[str]:
        return [key for key in self.account_of if f":{name}:" in key]

    def silence(self, account: str) -> None:
        """An account wants nothing any more."""
        self.silenced.add(account)

    def open_window(self) -> Window:
        """What a sender may know at this moment."""
        ended = frozenset(key for key, at in self.standing.items() if at.outcome is not None)
        silenced = {key for key, account in self.account_of.items() if account in self.silenced}
        known = frozenset(key for key, at in self.standing.items() if at.known_sent)
        paused = frozenset(key for key, at in self.account_of.items() if self.is_paused(key, at))
        return Window(ended, frozenset(self.asked | silenced), known, paused)

    def is_paused(self, key: str, account: str) -> bool:
        """Whether somebody was answered that this is paused."""
        kind, _, rest = key.partition(":")
        channel = rest.partition(":")[0]
        scopes = {("all", "*"), ("account", account), ("channel", channel), ("kind", kind)}
        return not self.pauses.isdisjoint(scopes)

    def answer_hold(self, name: str, answer: str, now: float) -> None:
        """Somebody was answered what a hold is."""
        hold = self.holds[name]
        if answer == "confirmed" and now > hold.ends_at + _CLOCK_TOLERANCE:
            self.fail(f"hold {name}: confirmed after its end")
        if answer in ("expired", "reheld", "refund") and now < hold.ends_at - _CLOCK_TOLERANCE:
            self.fail(f"hold {name}: {answer} before its end")
        if answer == "cancelled" and now < hold.ends_at - _CLOCK_TOLERANCE:
            hold.answers.add("cancelled in time")
        at = self.standing.get(f"hold:{name}")
        if answer == "reheld" and at is not None and at.outcome is None:
            hold.answers.add("reheld in time")
        hold.answers.add(answer)
        for one, other in _EXCLUDES:
            if one & hold.answers and other & hold.answers:
                self.fail(f"hold {name}: said to be {sorted(hold.answers)}")

    def start_send(self, key: str, window: Window | None) -> None:
        """A sender hands a key to the provider."""
        if key not in self.account_of:
            self.fail(f"{key}: sent, and was never promised")
        if window is None:
            self.fail(f"{key}: sent outside a window")
        elif key in window.ended:
            self.fail(f"{key}: sent, and its end was there when the window opened")
        elif key in window.asked:
            self.fail(f"{key}: sent, and it was to be ended before the window opened")
        elif key in window.paused and self.is_paused(key, self.account_of[key]):
            # One that was resumed meanwhile may have been so when the rules were read.
            self.fail(f"{key}: sent, and it was paused before the window opened")
        elif key in window.known and not self.pardoned[key]:
            self.fail(f"{key}: sent again, and it was known to be sent")

    def see_late(self, keys: set[str], standing: Mapping[str, Standing]) -> None:
        """A sender that had lost its batch has told that these were accepted."""
        for key in keys:
            place = standing[key].places
            if place in (("due",), ("in_doubt",), ("held",)):
                self.fail(f"{key}: a late answer says sent, and it stands in {place[0]}")

    def accept(self, key: str) -> None:
        """The provider takes a message that it does not recognise."""
        self.accepted[key] += 1
        if self.accepted[key] > 1 + self.pardoned[key]:
            self.fail(f"{key}: accepted {self.accepted[key]} times")

    def pardon(self, key: str) -> None:
        """A person says that it was not sent: it may be once more, right or wrong."""
        self.pardoned[key] += 1

    def vouch(self, key: str) -> None:
        """A person says that it was sent."""
        self.vouched.add(key)

    def see(self, standing: Mapping[str, Standing]) -> None:
        """The committed state now, against all that is known."""
        self.account_of.update({key: at.account for key, at in standing.items()})
        for key in self.account_of.keys() - standing.keys():
            self.fail(f"{key}: promised, and gone")
        for key, at in standing.items():
            self._see_place(key, at)
            before = self.standing.get(key)
            if before is not None and before.outcome is not None:
                self._see_same_end(key, before, at)
        self.standing = standing

    def _see_place(self, key: str, at: Standing) -> None:
        if len(at.places) != 1:
            self.fail(f"{key}: stands in {list(at.places) or 'no place'}")
        elif (at.places == ("outcome",)) != (at.outcome is not None):
            self.fail(f"{key}: its outcome and its place differ")
        if at.outcome == "sent" and not self.accepted[key] and key not in self.vouched:
            self.fail(f"{key}: said to be sent, and the provider never took it")
        if at.outcome == "done" and _IN_TIME & self._answers(key):
            self.fail(f"{key}: expired, and its holder was told {sorted(self._answers(key))}")
        if at.known_sent and not self.accepted[key]:
            self.fail(f"{key}: a result says sent, and the provider never took it")
        if at.known_sent and at.places in (("in_doubt",), ("held",)):
            self.fail(f"{key}: known to be sent, and {at.places[0]} ({at.cause})")

    def _answers(self, key: str) -> set[str]:
        hold = self.holds.get(key.removeprefix("hold:"))
        return set() if hold is None else hold.answers

    def _see_same_end(self, key: str, before: Standing, at: Standing) -> None:
        was = (before.outcome, before.reason, before.ended_at_attempt)
        now = (at.outcome, at.reason, at.ended_at_attempt)
        if was != now:
            self.fail(f"{key}: its outcome was {was} and is {now}")

    def rest(self) -> None:
        """After enough quiet sweeps each key has ended, or waits with a cause a person sees."""
        for name, last in self.schedules.items():
            written = self._occurrences(name)
            if last is None and len(written) < WRITTEN_AHEAD:
                self.fail(f"schedule {name}: only {len(written)} occurrences were written")
            if last is not None and written != last:
                self.fail(f"schedule {name}: occurrences were written after it was cancelled")
        for key, at in self.standing.items():
            place = at.places[0] if at.places else "no place"
            waits = (
                (place == "due" and not at.is_overdue)
                or (place == "in_doubt" and bool(at.cause))
                or (place == "held" and at.cause in HELD_CAUSES)
            )
            if not waits and place not in ("outcome", "proposed"):
                self.fail(f"{key}: at rest it still stands in {place} ({at.cause})")
