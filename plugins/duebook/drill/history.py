"""What had happened before: written backdated, since nobody waits for 37 minutes.

The clock that decides is the database's and can't be moved; so the past is written as it would
stand: holds created an hour ago, schedules put six days ago, an incident opened 37 minutes ago.
Everything from then on is the product's own work at the real time. Beside each thing stands what is
expected of it, computed without the product.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from duebook.domain.calendar import Rule
from duebook.domain.catch_up import CatchUpPolicy
from duebook.drill import expected, zone
from duebook.drill.expected import Expected
from duebook.drill.place import OPERATOR, Place
from duebook.services.imports import import_contacts, import_ledger
from duebook.services.schedule import ScheduleRequest, put_schedule

PAUSED_FOR: Final = timedelta(minutes=37)
HOLDS: Final = 420
SETTLED: Final = 60
RETRIED_AFTER: Final = timedelta(seconds=15)
OLD_FOR: Final = timedelta(days=7)
# Less than a week by more than a clock can jump: no schedule owes an earlier date.
PUT_BEFORE: Final = timedelta(days=6)
CURRENCY: Final = "EUR"
AMOUNT_MINOR: Final = 2500

# Minutes before now at which the reminders came due. All are inside the pause and longer ago than
# two sweeps, so that each of them was missed.
_ZONES: Final = (
    "Europe/Amsterdam",
    "Europe/London",
    "America/New_York",
    "America/St_Johns",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "Africa/Nairobi",
    "Asia/Dubai",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Australia/Sydney",
    "Pacific/Auckland",
    "Pacific/Chatham",
)
_FIRST_REMINDER: Final = 35
_JUMPED_BEFORE: Final = 34
_GAP_MINUTES: Final = (4, 11, 18, 25)
_MINUTE: Final = timedelta(minutes=1)

RETRIED: Final = "retried"
TOLD: Final = "told"
OLD: Final = "old"


@dataclass(frozen=True, slots=True)
class Payment:
    """One booked payment."""

    account_id: str
    payment_id: str
    provider_account: str
    expected_at: datetime

    @property
    def reference(self) -> str:
        """What the provider names it by."""
        return f"order-{self.payment_id}"


@dataclass(frozen=True, slots=True)
class Reminder:
    """One schedule, the instant at which it came due, and the local time that was meant (naive)."""

    account_id: str
    schedule: str
    rule: Rule
    group: str
    due_at: datetime
    local: datetime

    def expect(self) -> Expected:
        """It is told once, however late, and `explain` says so."""
        return Expected(
            self.group,
            self.account_id,
            f"remind:email:{self.schedule}:{self.local:%Y-%m-%d}",
            "sent",
            due_at=self.due_at,
            local=self.local,
            case="gap" if self.group == expected.GAP_REMINDERS else None,
            tells="late: due",
        )


def address(account_id: str) -> str:
    """Where an account is told: a name that can't be mailed to from outside (RFC 2606)."""
    return f"{account_id}@customers.invalid"


def payments(now: datetime) -> list[Payment]:
    """What is booked: of `shop` one that is missing and one to come, the rest of `night`."""
    soon = now - timedelta(hours=1)
    night = [f"night-{number:03}" for number in range(1, SETTLED + 1)]
    return [
        Payment(RETRIED, RETRIED, "shop", now - timedelta(days=10)),
        Payment(TOLD, TOLD, "shop", soon),
        Payment(OLD, OLD, "night", now - OLD_FOR - timedelta(hours=1)),
        *(Payment(name, name, "night", soon) for name in night),
    ]


def book(place: Place, now: datetime) -> None:
    """Import the books, and whom to tell."""
    booked = payments(now)
    accounts = [each.account_id for each in booked]
    accounts += [f"reminded-{number:02}" for number in range(1, 19)]
    ledger = _write(
        place.folder / "ledger.csv",
        "account_id payment_id reference amount_minor currency status expected_at provider_account",
        (
            (
                each.account_id,
                each.payment_id,
                each.reference,
                AMOUNT_MINOR,
                CURRENCY,
                "captured",
                each.expected_at.isoformat(),
                each.provider_account,
            )
            for each in booked
        ),
    )
    contacts = _write(
        place.folder / "contacts.csv",
        "account_id channel address zone",
        ((account, "email", address(account), "UTC") for account in accounts),
    )
    import_ledger(place.connect, ledger, place.config)
    import_contacts(place.connect, contacts)


def write_settlements(place: Place, now: datetime, payment_ids: Sequence[str], name: str) -> Path:
    """A file of the provider account `night`: each of the payments has settled."""
    rows = []
    for payment_id in payment_ids:
        occurred = now - (OLD_FOR if payment_id == OLD else timedelta(minutes=5))
        amount = f"{AMOUNT_MINOR // 100}.{AMOUNT_MINOR % 100:02}"
        reference, at = f"order-{payment_id}", occurred.isoformat()
        rows.append((f"E-{payment_id}", "charge", amount, reference, CURRENCY, at))
    return _write(place.folder / name, "entry type amount reference currency occurred", rows)


def expect_payments(now: datetime) -> list[Expected]:
    """What is to be told about payments, and what is not any more."""
    night = [each for each in payments(now) if each.account_id.startswith("night-")]
    return [
        Expected(
            expected.OLD,
            OLD,
            f"payment_settled:email:night:{OLD}:E-{OLD}:v1",
            "sent",
            due_at=now - OLD_FOR,
            tells="found 7 d late",
        ),
        Expected(
            expected.RETRY,
            RETRIED,
            f"missing:email:shop:{RETRIED}:{now - timedelta(days=10):%Y-%m-%d}:1",
            "expired",
            "settled_meanwhile",
        ),
        *(
            Expected(
                expected.WEBHOOKS,
                name,
                f"payment_settled:email:shop:{name}:txn_{number}:v1",
                "sent",
            )
            for number, name in enumerate((RETRIED, TOLD), start=1)
        ),
        *(
            Expected(
                expected.SETTLED,
                each.account_id,
                f"payment_settled:email:night:{each.payment_id}:E-{each.payment_id}:v1",
                "sent",
            )
            for each in night
        ),
    ]


def write_holds(place: Place, now: datetime) -> list[Expected]:
    """Holds created an hour ago, of which one after the other ended while the sweep was paused."""
    first = (now - PAUSED_FOR + timedelta(seconds=30)).replace(microsecond=0)
    step = (PAUSED_FOR - _MINUTE) / HOLDS
    ends = [
        (first + number * step).replace(microsecond=0).astimezone(UTC) for number in range(HOLDS)
    ]
    names = [f"hold-{number:03}" for number in range(1, HOLDS + 1)]
    accounts = [f"holder-{number % 50:02}" for number in range(HOLDS)]
    place.rows(
        "write_past_holds",
        account_ids=accounts,
        holds=names,
        expire_ats=ends,
        created_at=now - timedelta(hours=1),
        by=OPERATOR,
    )
    return [
        Expected(
            expected.HOLDS,
            account,
            f"expire:hold:{name}:{end:%Y-%m-%dT%H:%M:%S}Z",
            "done",
            due_at=end,
        )
        for account, name, end in zip(accounts, names, ends, strict=True)
    ]


def reminders(now: datetime, folder: Path) -> list[Reminder]:
    """18 weekly schedules that came due once while the sweep was paused, whatever `now` is.

    Four of them on a wall time that the zone in `folder`, which is written here, has skipped. The
    instants come first and the wall times from them, by the standard library.
    """
    minute = now.astimezone(UTC).replace(second=0, microsecond=0)
    jumps_at = minute - _JUMPED_BEFORE * _MINUTE
    with zone.write_zone(folder, jumps_at).open("rb") as file:
        jumping = ZoneInfo.from_file(file, key=zone.NAME)
    wanted: list[tuple[str, str, datetime]] = []
    for number, name in enumerate(_ZONES):
        due_at = minute - (_FIRST_REMINDER - 2 * number) * _MINUTE
        wanted.append((expected.REMINDERS, name, due_at.astimezone(ZoneInfo(name))))
    for minutes in _GAP_MINUTES:
        # Its offset was 0 before: the hour from `jumps_at` on is the one that it never showed.
        local = (jumps_at + minutes * _MINUTE).replace(tzinfo=jumping)
        wanted.append((expected.GAP_REMINDERS, zone.NAME, local))
    return [
        Reminder(
            f"reminded-{number:02}",
            f"reminder-{number:02}",
            _weekly(local, name),
            group,
            local.astimezone(UTC),
            local.replace(tzinfo=None),
        )
        for number, (group, name, local) in enumerate(wanted, start=1)
    ]


def put_reminders(place: Place, now: datetime) -> list[Expected]:
    """The schedules, put six days ago: so that each came due once since, and was missed."""
    wanted = reminders(now, place.zones)
    with zone.zones_of(place.zones):
        for one in wanted:
            request = ScheduleRequest(
                account_id=one.account_id,
                schedule=one.schedule,
                kind="reminder",
                rule=one.rule,
                catch_up=CatchUpPolicy("latest", timedelta(days=1), 1, 60_000),
                message={"text": "this is a drill."},
            )
            put_schedule(place.connect, request, by=OPERATOR)
    place.rows("backdate_schedules", put_at=now - PUT_BEFORE)
    return [one.expect() for one in wanted]


def _weekly(local: datetime, name: str) -> Rule:
    return Rule(
        frequency="weekly",
        every=1,
        weekdays=(local.isoweekday(),),
        zone=name,
        wall_time=time(local.hour, local.minute),
        absent="omit",
        gap="later",
        # Where this very hour comes twice, the one that is meant.
        overlap="later" if local.fold else "earlier",
        starts_on=local.date() - PUT_BEFORE,
    )


def _write(path: Path, columns: str, rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns.split())
        writer.writerows(rows)
    return path
