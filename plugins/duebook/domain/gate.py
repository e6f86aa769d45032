"""The gate: the one function that decides, just before I/O, what becomes of an intent.

Its order is the design's, and no path goes around it: environment, ownership, still wanted, too
late, pause, suppression, consent, quiet hours, contact, budget, channel enabled, and last the pace
of catching up and the contact cap, so that only what may be sent takes a slot of either. The first
that objects decides.
Everything it needs was read before, in the transaction that opens the window of sends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from zoneinfo import ZoneInfo

from duebook.domain.catch_up import CatchUpPolicy, judge
from duebook.domain.quiet_hours import QuietWindow, quiet_until

Action = Literal["send", "defer", "expire", "hold", "drop"]
Ownership = Literal["live", "shadow", "dry_run"]
Consent = Literal["granted", "refused", "undecided"]
Request = Literal["cancel", "supersede", "opt_out"]
Pause = Literal["none", "hold", "drop"]

EXPIRE_REASONS: Final = frozenset(
    {
        "too_late",
        "superseded",
        "opted_out",
        "suppressed",
        "channel_disabled",
        "settled_meanwhile",
        "cancelled",
        "exhausted",
        "refused",
        "dropped",
        "skipped",
    }
)
HOLD_CAUSES: Final = frozenset(
    {"environment", "no_consent", "zone_unknown", "no_contact", "paused", "retry_unsafe"}
)
DEFER_REASONS: Final = frozenset({"quiet_hours", "budget", "spread", "contact_cap"})
DROP_REASONS: Final = frozenset({"has_outcome", "lost_claim", "not_owner"})

_REQUESTED: Final = (
    ("cancel", "cancelled"),
    ("supersede", "superseded"),
    ("opt_out", "opted_out"),
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, why, and for a deferral until when.

    send: hand it to the channel now (an internal act: do it now). defer: back to due with `until`.
    expire: write the outcome with `reason`. hold: to held with `reason` as its cause, but
    `retry_unsafe`, which belongs in doubt. drop: nothing is to be done or written.
    """

    action: Action
    reason: str | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class GateFacts:
    """What is known of one claimed intent at the moment of its window; instants are aware.

    `due_at` is the newest due time (or when a held row was released). `claim_is_held` is False once
    the batch was rescued. `requests` are those appended since the claim. `settled_meanwhile`: what
    the notice says is no longer so (a payment said to be missing has settled; a hold was confirmed
    or cancelled). `quiet_windows` are those that match region, channel and kind; `zone` is the
    recipient's IANA zone, looked at only when there are windows. `safe_retry_until` is set on a
    repeat of a send that the provider may have accepted. `newer_due` as in catch_up.judge().
    `slot_at` is when the pace of catching up lets a missed one go, None for what was not missed;
    at or after `give_up_at` it means that no slot was left in time. `contact_free_at` is from when
    on a contact cap has room for it, None where there is room now.
    """

    due_at: datetime
    give_up_at: datetime
    environment_accepted: bool = True
    ownership: Ownership = "live"
    has_outcome: bool = False
    claim_is_held: bool = True
    requests: frozenset[Request] = frozenset()
    settled_meanwhile: bool = False
    tries: int = 0
    max_tries: int | None = None
    catch_up: CatchUpPolicy | None = None
    newer_due: int = 0
    suppressed: bool = False
    consent: Consent = "undecided"
    consent_required: bool = False
    quiet_windows: tuple[QuietWindow, ...] = ()
    zone: str | None = None
    has_contact: bool = True
    budget_paused_until: datetime | None = None
    channel_enabled: bool = True
    pause: Pause = "none"
    safe_retry_until: datetime | None = None
    slot_at: datetime | None = None
    contact_free_at: datetime | None = None
    is_internal: bool = False


def decide(facts: GateFacts, now: datetime) -> Decision:
    """Send, defer, expire, hold or drop one intent. Pure; `now` is the database's clock.

    Internal acts (the expiry of a hold) pass only "still wanted".
    """
    checks = (_still_wanted,) if facts.is_internal else _CHECKS
    for check in checks:
        decision = check(facts, now)
        if decision is not None:
            return decision
    return Decision("send")


def _environment(facts: GateFacts, now: datetime) -> Decision | None:
    return None if facts.environment_accepted else Decision("hold", "environment")


def _ownership(facts: GateFacts, now: datetime) -> Decision | None:
    return None if facts.ownership == "live" else Decision("drop", "not_owner")


def _still_wanted(facts: GateFacts, now: datetime) -> Decision | None:
    if facts.has_outcome:
        return Decision("drop", "has_outcome")
    if not facts.claim_is_held:
        return Decision("drop", "lost_claim")
    for request, reason in _REQUESTED:
        if request in facts.requests:
            return Decision("expire", reason)
    if facts.settled_meanwhile:
        return Decision("expire", "settled_meanwhile")
    return None


def _too_late(facts: GateFacts, now: datetime) -> Decision | None:
    if now >= facts.give_up_at:
        return Decision("expire", "too_late")
    if facts.catch_up is not None:
        verdict = judge(facts.catch_up, due_at=facts.due_at, newer_due=facts.newer_due, now=now)
        if verdict != "send":
            return Decision("expire", verdict)
    if facts.max_tries is not None and facts.tries >= facts.max_tries:
        return Decision("expire", "exhausted")
    return None


def _paused(facts: GateFacts, now: datetime) -> Decision | None:
    if facts.pause == "drop":
        return Decision("expire", "dropped")
    return Decision("hold", "paused") if facts.pause == "hold" else None


def _suppression(facts: GateFacts, now: datetime) -> Decision | None:
    return Decision("expire", "suppressed") if facts.suppressed else None


def _consent(facts: GateFacts, now: datetime) -> Decision | None:
    if facts.consent == "refused":
        return Decision("expire", "opted_out")
    if facts.consent_required and facts.consent != "granted":
        return Decision("hold", "no_consent")
    return None


def _quiet_hours(facts: GateFacts, now: datetime) -> Decision | None:
    if not facts.quiet_windows:
        return None
    zone = find_zone(facts.zone)
    if zone is None:
        # Guessing a zone could wake somebody at night.
        return Decision("hold", "zone_unknown")
    until = quiet_until(facts.quiet_windows, zone, now)
    if until is None:
        return None
    if until >= facts.give_up_at:
        return Decision("expire", "too_late")
    return Decision("defer", "quiet_hours", until)


def _contact(facts: GateFacts, now: datetime) -> Decision | None:
    return None if facts.has_contact else Decision("hold", "no_contact")


def _budget(facts: GateFacts, now: datetime) -> Decision | None:
    paused_until = facts.budget_paused_until
    if paused_until is None or paused_until <= now:
        return None
    # A pause can be lifted, an ending can't: at its limit it is looked at once more.
    return Decision("defer", "budget", min(paused_until, facts.give_up_at))


def _channel_enabled(facts: GateFacts, now: datetime) -> Decision | None:
    return None if facts.channel_enabled else Decision("expire", "channel_disabled")


def _safe_retry(facts: GateFacts, now: datetime) -> Decision | None:
    if facts.safe_retry_until is None or now < facts.safe_retry_until:
        return None
    return Decision("hold", "retry_unsafe")


def _spread(facts: GateFacts, now: datetime) -> Decision | None:
    slot_at = facts.slot_at
    if slot_at is None or slot_at <= now:
        return None
    if slot_at >= facts.give_up_at:
        return Decision("expire", "too_late")
    return Decision("defer", "spread", slot_at)


def _contact_cap(facts: GateFacts, now: datetime) -> Decision | None:
    free_at = facts.contact_free_at
    if free_at is None or free_at <= now:
        return None
    if free_at >= facts.give_up_at:
        return Decision("expire", "too_late")
    return Decision("defer", "contact_cap", free_at)


_Check = Callable[[GateFacts, datetime], Decision | None]
_CHECKS: Final[tuple[_Check, ...]] = (
    _environment,
    _ownership,
    _still_wanted,
    _too_late,
    _paused,
    _suppression,
    _consent,
    _quiet_hours,
    _contact,
    _budget,
    _channel_enabled,
    _safe_retry,
    _spread,
    _contact_cap,
)


def find_zone(name: str | None) -> ZoneInfo | None:
    """The zone of an IANA name, or None when it is absent or not in the tz database."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        # Not found is a KeyError, a path outside the database a ValueError, a folder an OSError.
        return None
