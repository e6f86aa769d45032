"""The table of the drill: what is expected of every key, and what came of it.

What is expected is known before anything runs, and is computed without the product: keys from the
published grammar, due times by the standard library's zoneinfo. What came of it is read from the
database and from the log of the receiving side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from duebook.channels.base import message_id_for

HOLDS: Final = "holds that ended while the sweep was paused"
REMINDERS: Final = "weekly reminders that came due meanwhile"
GAP_REMINDERS: Final = "of them in a DST gap, gap = later"
OLD: Final = "seven days old, its window ten days"
RETRY: Final = "put off by 451, settled before its retry"
WEBHOOKS: Final = "settled, as webhooks told: one of them twice"
SETTLED: Final = "settlement notices of the night"
DOUBT_FOUND: Final = "unknown by a worker's death, in the relay's log"
DOUBT_NOT_FOUND: Final = "unknown by a worker's death, not in its log"
GROUPS: Final = (
    HOLDS,
    REMINDERS,
    GAP_REMINDERS,
    OLD,
    RETRY,
    WEBHOOKS,
    SETTLED,
    DOUBT_FOUND,
    DOUBT_NOT_FOUND,
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of one key; what is None is not looked at.

    `due_at` is the instant that it was promised for, `local` the intended local time (naive),
    `case` how that was met. `attempts` is stated where the number of claims is certain; `tells` is
    what `explain` has to say.
    """

    group: str
    account_id: str
    operation_key: str
    result: str
    reason: str = ""
    due_at: datetime | None = None
    local: datetime | None = None
    case: str | None = None
    attempts: int | None = None
    tells: str = ""

    @property
    def identity(self) -> tuple[str, str]:
        """What a key is unique by."""
        return self.account_id, self.operation_key

    @property
    def mails(self) -> int:
        """How often the receiving side is to have got it."""
        return int(self.result == "sent")

    def to_json(self) -> dict[str, Any]:
        """What is expected, as `duebook drill --json` has it."""
        return {
            "group": self.group,
            "account_id": self.account_id,
            "operation_key": self.operation_key,
            "result": self.result,
            "reason": self.reason,
            "due_at": None if self.due_at is None else _instant(self.due_at),
            "received": self.mails,
        }


@dataclass(frozen=True, slots=True)
class Wrong:
    """One key that is not as expected, and how."""

    group: str
    account_id: str
    operation_key: str
    expected: str
    got: str

    def to_json(self) -> dict[str, str]:
        """Every field."""
        return {
            "group": self.group,
            "account_id": self.account_id,
            "operation_key": self.operation_key,
            "expected": self.expected,
            "got": self.got,
        }


@dataclass(frozen=True, slots=True)
class Line:
    """One group of the table."""

    group: str
    keys: int
    expected: str
    got: str
    is_right: bool

    def to_json(self) -> dict[str, Any]:
        """Every field."""
        return {
            "group": self.group,
            "keys": self.keys,
            "expected": self.expected,
            "got": self.got,
            "ok": self.is_right,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """The whole table. `lost` keys have no outcome, `doubled` ones came to the receiver twice."""

    lines: tuple[Line, ...]
    wrong: tuple[Wrong, ...]
    lost: int
    doubled: int


def in_doubt_as_expected(
    table: Sequence[Expected],
    window: Iterable[tuple[str, str]],
    mails: Mapping[str, int],
    sender: str | None,
) -> list[Expected]:
    """The table, with the keys of a killed worker's window in groups of their own.

    What the relay had taken by then (`mails`) is to end without another attempt, what it had not is
    to be sent by a second one.
    """
    suspects = set(window)
    changed = []
    for one in table:
        if one.identity in suspects:
            is_found = message_id_for(*one.identity, sender) in mails
            one = replace(
                one,
                group=DOUBT_FOUND if is_found else DOUBT_NOT_FOUND,
                reason="looked_up" if is_found else "",
                attempts=1 if is_found else 2,
            )
        changed.append(one)
    return changed


def judge(
    table: Sequence[Expected],
    rows: Sequence[Mapping[str, Any]],
    mails: Mapping[str, int],
    sender: str | None,
) -> Verdict:
    """Compare every key of the table with what is there, and what is there with the table."""
    stands = {(row["account_id"], row["operation_key"]): row for row in rows}
    left = Counter(mails)
    wrong: list[Wrong] = []
    got: dict[str, Counter[str]] = {group: Counter() for group in GROUPS}
    lost = doubled = 0
    for one in table:
        message_id = message_id_for(*one.identity, sender)
        times = left.pop(message_id, 0)
        row = stands.pop(one.identity, None)
        lost += row is None or not row["has_ended"] or times < one.mails
        doubled += times > 1
        got[one.group][_short(row)] += 1
        said = _differences(one, row, times)
        if said is not None:
            wrong.append(Wrong(one.group, one.account_id, one.operation_key, *said))
    for (account_id, key), row in stands.items():
        wrong.append(Wrong("in no group", account_id, key, "no such key", _short(row)))
    for message_id, times in left.items():
        wrong.append(Wrong("in no group", "", message_id, "no such message", f"taken {times}x"))
    return Verdict(_lines(table, got, wrong), tuple(wrong), lost, doubled)


def _lines(
    table: Sequence[Expected], got: Mapping[str, Counter[str]], wrong: Sequence[Wrong]
) -> tuple[Line, ...]:
    expected: dict[str, Counter[str]] = {group: Counter() for group in GROUPS}
    for one in table:
        expected[one.group][f"{one.result} {one.reason}".strip()] += 1
    bad = {each.group for each in wrong}
    return tuple(
        Line(
            group=group,
            keys=expected[group].total(),
            expected=_counted(expected[group]),
            got=_counted(got[group]),
            is_right=group not in bad,
        )
        for group in GROUPS
        if expected[group]
    )


def _differences(
    one: Expected, row: Mapping[str, Any] | None, times: int
) -> tuple[str, str] | None:
    if row is None:
        return _wanted(one), "no such key"
    faults = []
    if (row["result"], row["reason"]) != (one.result, one.reason):
        faults.append(_short(row))
    if one.due_at is not None and row["due_at"] != one.due_at:
        faults.append(f"due {_instant(row['due_at'])}")
    if one.local is not None and row["intended_local"] != one.local:
        faults.append(f"local {row['intended_local']}")
    if one.case is not None and row["case_of"] != one.case:
        faults.append(f"case {row['case_of']}")
    if one.attempts is not None and row["attempts"] != one.attempts:
        faults.append(f"{row['attempts']} attempts")
    if times != one.mails:
        faults.append(f"received {times}x")
    return (_wanted(one), ", ".join(faults)) if faults else None


def _wanted(one: Expected) -> str:
    parts = [f"{one.result} {one.reason}".strip()]
    if one.due_at is not None:
        parts.append(f"due {_instant(one.due_at)}")
    if one.local is not None:
        parts.append(f"local {one.local}")
    if one.case is not None:
        parts.append(f"case {one.case}")
    if one.attempts is not None:
        parts.append(f"{one.attempts} attempts")
    return ", ".join([*parts, f"received {one.mails}x"])


def _short(row: Mapping[str, Any] | None) -> str:
    return "nothing" if row is None else f"{row['result']} {row['reason']}".strip()


def _instant(value: datetime | None) -> str:
    return "never" if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common())
