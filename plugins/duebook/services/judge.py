"""From the facts of a window to what becomes of each of its intents, before and after I/O.

Pure but for the jitter: the gate decides before the channel is asked, and the channel's answer is
turned into a result after it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from duebook.channels.base import SendResult
from duebook.domain.backoff import retry_delay
from duebook.domain.catch_up import CatchUpPolicy
from duebook.domain.gate import Decision, GateFacts, Pause, decide, find_zone
from duebook.domain.quiet_hours import QuietWindow, quiet_until
from duebook.services.flush import Claimed, Ending, Move, Rules

# A held intent whose cause only trying again can test is tried again at these distances.
_FIRST_RETEST: Final = timedelta(minutes=5)
_LONGEST_RETEST: Final = timedelta(hours=6)
# Enhanced status (RFC 3463) that is about the address or a closed mailbox, and permanent.
_ADDRESS_IS_DEAD: Final = re.compile(r"5[0-9]{2} 5\.(1\.(0|1|2|3|6|10)|2\.1)$")


@dataclass(frozen=True, slots=True)
class Retries:
    """How a channel's failed sends are tried again.

    `waits` are those after the first, second, … burnt try, the last for all others; without any
    they double. `are_safe`: the channel recognises a repeat, so that what may have been accepted is
    tried again too, until the claim's safe_retry_until.
    """

    waits: tuple[timedelta, ...] = ()
    are_safe: bool = False

    def wait_after(self, tries: int, jitter: float) -> timedelta:
        """How long to wait after so many burnt tries; `jitter` in [0, 1) adds up to a tenth."""
        if not self.waits:
            return retry_delay(tries, jitter=jitter)
        return self.waits[min(tries, len(self.waits)) - 1] * (1 + jitter / 10)


_DOUBLING: Final = Retries()


class Policies:
    """The rules of a window in the gate's types; built once a window."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._kinds = rules.kinds or {}
        self._catch_up: dict[str, CatchUpPolicy] = {}
        self._quiet = [
            (region, kind, QuietWindow(time.fromisoformat(start), time.fromisoformat(end)))
            for region, kind, start, end in rules.quiet_hours or ()
            if start is not None and end is not None
        ]
        self._is_quiet: dict[tuple[str | None, str, str | None], bool] = {}
        self._pauses = {(scope, name): mode for scope, name, mode in rules.pauses or ()}

    def knows(self, kind: str) -> bool:
        """Whether the kind has a policy; without one nothing is sent."""
        return kind in self._kinds

    def max_tries(self, kind: str) -> int:
        """Burnt tries after which a kind gives up."""
        return int(self._kinds[kind][4])

    def is_critical(self, kind: str) -> bool:
        """Whether a contact cap does not hold the kind back."""
        return bool(self._kinds[kind][5])

    def digest_most(self, kind: str) -> int | None:
        """The most notices of the kind that go in one message; None: each in its own."""
        most = self._kinds[kind][6]
        return None if most is None else int(most)

    @property
    def has_digests(self) -> bool:
        """Whether any kind is told together."""
        return any(policy[6] is not None for policy in self._kinds.values())

    def catch_up(self, kind: str) -> CatchUpPolicy:
        """The catch-up policy of a kind."""
        policy = self._catch_up.get(kind)
        if policy is None:
            mode, window_s, most, spread = self._kinds[kind][:4]
            policy = CatchUpPolicy(mode, timedelta(seconds=float(window_s)), most, spread)
            self._catch_up[kind] = policy
        return policy

    def quiet_windows(self, row: Claimed) -> tuple[QuietWindow, ...]:
        """The quiet hours that hold for an intent."""
        return tuple(
            window
            for region, kind, window in self._quiet
            if region in (None, row.region) and kind in (None, row.kind)
        )

    def may_be_quiet(self, row: Claimed, now: datetime) -> bool:
        """Whether quiet hours keep an intent back now, or its zone is not known and may do so."""
        if not self._quiet:
            return False
        place = (row.region, row.kind, row.recipient_zone)
        is_quiet = self._is_quiet.get(place)
        if is_quiet is None:
            windows, zone = self.quiet_windows(row), find_zone(row.recipient_zone)
            is_quiet = bool(windows) and (
                zone is None or quiet_until(windows, zone, now) is not None
            )
            self._is_quiet[place] = is_quiet
        return is_quiet

    def pause_of(self, row: Claimed) -> Pause:
        """How an intent is paused; the rules hold the channel's pauses already."""
        modes = {
            self._pauses.get(("kind", row.kind)),
            self.rules.paused_accounts.get(row.account_id),
            *(mode for (scope, _), mode in self._pauses.items() if scope in ("all", "channel")),
        }
        return "drop" if "drop" in modes else "hold" if "hold" in modes else "none"


def gate(row: Claimed, policies: Policies, now: datetime, safety: timedelta) -> Decision:
    """What the gate says to one intent. `safety` is how long after `now` its I/O may still end."""
    if not policies.knows(row.kind):
        return Decision("hold", "kind_unknown")
    rules = policies.rules
    safe_retry_until = row.safe_retry_until
    return decide(
        GateFacts(
            due_at=row.due_at,
            give_up_at=row.give_up_at,
            ownership=row.ownership,  # type: ignore[arg-type]
            has_outcome=row.has_outcome,
            claim_is_held=not row.is_claimed_elsewhere,
            requests=frozenset(row.requests) if row.requests else frozenset(),  # type: ignore[arg-type]
            settled_meanwhile=row.is_settled_meanwhile,
            tries=row.tries,
            max_tries=policies.max_tries(row.kind),
            catch_up=row.policy or policies.catch_up(row.kind),
            newer_due=row.newer_due,
            suppressed=row.suppression_reason is not None,
            consent="refused" if row.is_consent_refused else "undecided",
            quiet_windows=policies.quiet_windows(row) if rules.quiet_hours else (),
            zone=row.recipient_zone,
            has_contact=row.address is not None,
            budget_paused_until=rules.paused_until,
            channel_enabled=rules.is_channel_enabled,
            pause=policies.pause_of(row),
            safe_retry_until=None if safe_retry_until is None else safe_retry_until - safety,
            slot_at=row.slot_at,
            contact_free_at=row.contact_free_at,
        ),
        now,
    )


# The facts from here on are exceptions; these are their values when there is none.
_FIRST_EXCEPTION: Final = Claimed._fields.index("has_outcome")
_NOTHING_KNOWN: Final = (
    *(False, None, None, False, False, False, None, False, 0, None, None),
    None,
)


def judge_rows(
    rows: Sequence[Claimed], policies: Policies, now: datetime, safety: timedelta
) -> tuple[list[Claimed], list[Ending]]:
    """The intents to send, in their order, and the endings of those that are not."""
    to_send: list[Claimed] = []
    endings: list[Ending] = []
    is_plain = _plain_test(rows, policies, now, safety)
    for row in rows:
        if is_plain(row):
            to_send.append(row)
            continue
        ending = _before_gate(row, now)
        if ending is None:
            try:
                decision = gate(row, policies, now, safety)
            except Exception as error:  # one bad row never stops a window
                ending = hold(row, now, "gate_failed", type(error).__name__)
            else:
                if decision.action == "send":
                    to_send.append(row)
                    continue
                ending = _of_decision(row, decision, now)
        endings.append(ending)
    return to_send, endings


def _plain_test(
    rows: Sequence[Claimed], policies: Policies, now: datetime, safety: timedelta
) -> Callable[[Claimed], bool]:
    """A test for rows that the gate need not see one by one.

    Rows of a first attempt of which nothing is known but their times differ for the gate in how old
    and how near to their limit they are. It is asked once a kind, about a row that is as old as the
    oldest and as near as the nearest of the window: if that one may be sent, so may they all.
    """
    oldest = min((row.due_at for row in rows), default=now)
    nearest = min((row.give_up_at for row in rows), default=now)
    paused_accounts = policies.rules.paused_accounts
    may_send: dict[str, bool] = {}

    def is_plain(row: Claimed) -> bool:
        if row[_FIRST_EXCEPTION:] != _NOTHING_KNOWN or row.address is None or row.tries:
            return False
        if row.ownership != "live" or row.operation_key is None or row.safe_retry_until is not None:
            return False
        if row.account_id in paused_accounts or policies.may_be_quiet(row, now):
            return False
        verdict = may_send.get(row.kind)
        if verdict is None:
            worst = row._replace(due_at=oldest, give_up_at=nearest)
            try:
                verdict = gate(worst, policies, now, safety).action == "send"
            except Exception:  # asked again row by row, where it is held
                verdict = False
            may_send[row.kind] = verdict
        return may_send[row.kind]

    return is_plain


def _before_gate(row: Claimed, now: datetime) -> Ending | None:
    if row.operation_key is None:
        return Ending(row, "skipped", "no_intent", now)
    if row.sent_attempt_no is not None and not row.has_outcome:
        return Ending(row, "skipped", "sent_late", now, adopts=row.sent_attempt_no)
    return None


def _of_decision(row: Claimed, decision: Decision, now: datetime) -> Ending:
    reason = decision.reason or decision.action
    if decision.action == "expire":
        return Ending(row, "expired", reason, now)
    if decision.action == "defer":
        return Ending(row, "deferred", reason, now, move=Move("due", reason, due_at=decision.until))
    if decision.action == "hold":
        if reason == "retry_unsafe":
            return Ending(row, "unknown", reason, now, move=Move("in_doubt", reason))
        return hold(row, now, reason)
    move = Move("proposed", reason) if reason == "not_owner" else None
    return Ending(row, "skipped", reason, now, move=move)


def hold(row: Claimed, now: datetime, cause: str, detail: str | None = None) -> Ending:
    """Held with a cause; what only trying again can test is tried at growing distances."""
    retest_at = None
    if cause in ("template", "gate_failed"):
        wait = _FIRST_RETEST * 2 ** min(row.attempt_no - 1, 10)
        retest_at = now + min(wait, _LONGEST_RETEST)
    move = Move("held", cause, detail=detail, retest_at=retest_at)
    return Ending(row, "held", cause, now, move=move)


def is_about_channel(answer: SendResult) -> bool:
    """Whether an answer asks the whole channel to rest, and not just this message to wait."""
    return answer.status == "later" and answer.scope == "channel"


def ending_of(
    row: Claimed,
    answer: SendResult,
    now: datetime,
    policies: Policies,
    *,
    look_up_from: datetime,
    retries: Retries = _DOUBLING,
    jitter: Callable[[], float] = random.random,
) -> Ending:
    """The result of one send that was not accepted, from the channel's answer."""
    code, sent_id = answer.code, answer.provider_message_id
    tries = row.tries + answer.burns_try
    is_last = tries >= policies.max_tries(row.kind)
    if answer.status == "unknown":
        move = Move("in_doubt", code or "unknown", look_up_from=look_up_from)
        if retries.are_safe and not is_last:
            due_at = now + retries.wait_after(tries, jitter())
            move = replace(move, place="due", due_at=due_at, burns=True, is_repeat=True)
        return Ending(row, "unknown", answer.detail, now, code, sent_id, move)
    if answer.opts_out:
        return Ending(row, "expired", "opted_out", now, code, sent_id)
    if answer.status == "refused":
        return Ending(row, "expired", "refused", now, code, sent_id)
    if is_about_channel(answer):
        return Ending(row, "deferred", "budget", now, code, move=Move("due", "budget"))
    if not answer.burns_try:
        wait = answer.retry_after or retries.wait_after(1, jitter())
        move = Move("due", "retry", due_at=now + wait)
        return Ending(row, "deferred", "retry", now, code, move=move)
    if is_last:
        return _give_up(row, now, code, look_up_from)
    wait = retries.wait_after(tries, jitter())
    if answer.retry_after is not None:
        wait = max(wait, answer.retry_after)
    move = Move("due", "retry", due_at=now + wait, burns=True)
    return Ending(row, "failed", "retry", now, code, move=move)


def _give_up(row: Claimed, now: datetime, code: str | None, look_up_from: datetime) -> Ending:
    if row.safe_retry_until is None:
        return Ending(row, "expired", "exhausted", now, code)
    # An earlier try may have been accepted: that the last one was not says nothing of it.
    move = Move("in_doubt", "exhausted", look_up_from=look_up_from)
    return Ending(row, "unknown", "exhausted", now, code, move=move)


def suppression_of(answer: SendResult) -> str | None:
    """Why nothing is ever to be sent to this address again; None for a refusal of this once."""
    if answer.status != "refused" or answer.opts_out:
        return None
    is_dead = _ADDRESS_IS_DEAD.match(answer.code or "") is not None
    return answer.suppress or (answer.code if is_dead else None)


def message_facts(facts: Mapping[str, Any], zone: Any) -> dict[str, object]:
    """What the templates are given; the date is the recipient's, a reminder's its own."""
    if "message" in facts:
        return reminder_facts(
            facts["account_id"],
            facts["schedule"],
            facts["message"],
            facts["intended_local"],
            facts["zone"],
        )
    occurred_at: datetime = facts["occurred_at"]
    return {
        "account_id": facts["account_id"],
        "payment_id": facts["payment_id"],
        "reference": facts["reference"],
        "amount_minor": facts["amount_minor"],
        "expected_minor": facts["expected_minor"],
        "currency": facts["currency"],
        "exponent": facts["exponent"],
        "occurred_on": occurred_at.astimezone(zone).date(),
        "status_before": facts["before_status"],
        "status_after": facts["after_status"],
    }


def reminder_facts(
    account_id: str, schedule: str, message: Mapping[str, str], intended: datetime, zone: str
) -> dict[str, object]:
    """What the template of a reminder is given: the texts of its schedule, and when it is for."""
    return {
        **message,
        "account_id": account_id,
        "schedule": schedule,
        "occurs_on": intended.date(),
        "occurs_at": f"{intended:%H:%M}",
        "zone": zone,
    }


def facts_for_programs(
    told: Mapping[str, object], occurred_at: datetime | None
) -> dict[str, object]:
    """What a message says, for a channel that speaks to programs: JSON's own types, nothing lost.

    Dates and instants in ISO 8601, instants in UTC; money stays minor units. Raises TypeError for
    a float, whose amount nobody can be sure of.
    """
    facts = {name: _for_programs(value) for name, value in told.items()}
    if occurred_at is not None:
        facts["occurred_at"] = _for_programs(occurred_at)
    return facts


def _for_programs(value: object) -> object:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"a fact is a {type(value).__name__}")
