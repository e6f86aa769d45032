"""The gate: its order, what blocks, and where a deferral may point."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duebook.domain import gate
from duebook.domain.catch_up import CatchUpPolicy
from duebook.domain.gate import (
    DEFER_REASONS,
    DROP_REASONS,
    EXPIRE_REASONS,
    HOLD_CAUSES,
    Decision,
    GateFacts,
    decide,
)
from duebook.domain.quiet_hours import QuietWindow

NOW = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
NIGHT = (QuietWindow(time(21), time(8)),)
CLEAR = GateFacts(due_at=NOW - timedelta(seconds=20), give_up_at=NOW + 48 * HOUR)
SKIP = CatchUpPolicy(mode="skip", window=6 * HOUR, max_occurrences=1, spread_per_minute=60)

# One blocking fact for each step, in the design's order, with what it decides.
STEPS: list[tuple[dict[str, Any], Decision]] = [
    ({"environment_accepted": False}, Decision("hold", "environment")),
    ({"ownership": "shadow"}, Decision("drop", "not_owner")),
    ({"has_outcome": True}, Decision("drop", "has_outcome")),
    ({"claim_is_held": False}, Decision("drop", "lost_claim")),
    ({"requests": frozenset({"cancel"})}, Decision("expire", "cancelled")),
    ({"settled_meanwhile": True}, Decision("expire", "settled_meanwhile")),
    ({"give_up_at": NOW}, Decision("expire", "too_late")),
    ({"catch_up": SKIP, "due_at": NOW - HOUR}, Decision("expire", "skipped")),
    ({"tries": 5, "max_tries": 5}, Decision("expire", "exhausted")),
    ({"pause": "hold"}, Decision("hold", "paused")),
    ({"suppressed": True}, Decision("expire", "suppressed")),
    ({"consent": "refused"}, Decision("expire", "opted_out")),
    (
        {"quiet_windows": NIGHT, "zone": "Europe/Berlin"},
        Decision("defer", "quiet_hours", datetime(2026, 11, 30, 7, 0, tzinfo=UTC)),
    ),
    ({"has_contact": False}, Decision("hold", "no_contact")),
    ({"budget_paused_until": NOW + HOUR}, Decision("defer", "budget", NOW + HOUR)),
    ({"channel_enabled": False}, Decision("expire", "channel_disabled")),
    ({"safe_retry_until": NOW}, Decision("hold", "retry_unsafe")),
    ({"slot_at": NOW + HOUR}, Decision("defer", "spread", NOW + HOUR)),
    ({"contact_free_at": NOW + HOUR}, Decision("defer", "contact_cap", NOW + HOUR)),
]


def test_nothing_in_the_way_is_sent() -> None:
    assert decide(CLEAR, NOW) == Decision("send")


@pytest.mark.parametrize(("fact", "decision"), STEPS, ids=lambda step: str(step)[:60])
def test_each_fact_alone_decides(fact: dict[str, Any], decision: Decision) -> None:
    assert decide(replace(CLEAR, **fact), NOW) == decision


@given(st.sets(st.integers(0, len(STEPS) - 1), min_size=1))
def test_the_first_step_that_objects_decides(chosen: set[int]) -> None:
    facts = CLEAR
    for index in sorted(chosen, reverse=True):
        facts = replace(facts, **STEPS[index][0])
    decision = decide(facts, NOW)
    expected = STEPS[min(chosen)][1]
    assert (decision.action, decision.reason) == (expected.action, expected.reason)


def holds(checks: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a gate of these steps decides as it must: each alone, and each before the next."""
    monkeypatch.setattr(gate, "_CHECKS", checks)
    alone = all(decide(replace(CLEAR, **fact), NOW) == decision for fact, decision in STEPS)
    in_order = all(
        decide(replace(CLEAR, **second, **first), NOW).reason == decision.reason
        for (first, decision), (second, _) in combinations(STEPS, 2)
        if not first.keys() & second.keys()
    )
    return alone and in_order


def test_a_gate_without_one_of_its_steps_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = gate._CHECKS
    assert holds(steps, monkeypatch)
    for number in range(len(steps)):
        assert not holds(steps[:number] + steps[number + 1 :], monkeypatch), steps[number]


def test_a_gate_with_two_steps_swapped_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = gate._CHECKS
    for number in range(len(steps) - 1):
        one, two = steps[number : number + 2]
        assert not holds((*steps[:number], two, one, *steps[number + 2 :]), monkeypatch), one


def _otherwise(step: Any, action: Any) -> Any:
    """The step with another action for the same facts."""

    def other(facts: GateFacts, now: datetime) -> Decision | None:
        decision: Decision | None = step(facts, now)
        return decision and replace(decision, action=action, reason="other")

    return other


def test_a_step_that_decides_otherwise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = gate._CHECKS
    for number, step in enumerate(steps):
        for action in ("send", "drop", "expire"):
            mutant = (*steps[:number], _otherwise(step, action), *steps[number + 1 :])
            assert not holds(mutant, monkeypatch), step


def repr_of(value: Any) -> str:
    """A set in one order, whatever the seed of this process's hashes."""
    if isinstance(value, dict):
        return " ".join(f"{name}={repr_of(each)}" for name, each in value.items())
    return "+".join(sorted(value)) if isinstance(value, frozenset) else str(value)


@pytest.mark.parametrize(
    ("fact", "decision"),
    [
        ({"requests": frozenset({"supersede"})}, Decision("expire", "superseded")),
        ({"requests": frozenset({"opt_out"})}, Decision("expire", "opted_out")),
        (
            {"requests": frozenset({"opt_out", "cancel", "supersede"})},
            Decision("expire", "cancelled"),
        ),
        ({"pause": "drop"}, Decision("expire", "dropped")),
        ({"consent_required": True}, Decision("hold", "no_consent")),
        ({"consent_required": True, "consent": "granted"}, Decision("send")),
        ({"quiet_windows": NIGHT}, Decision("hold", "zone_unknown")),
        ({"quiet_windows": NIGHT, "zone": "Mars/Base"}, Decision("hold", "zone_unknown")),
        ({"quiet_windows": NIGHT, "zone": "../etc/passwd"}, Decision("hold", "zone_unknown")),
        ({"quiet_windows": NIGHT, "zone": "Europe"}, Decision("hold", "zone_unknown")),
        ({"quiet_windows": NIGHT, "zone": "Asia/Tokyo"}, Decision("send")),
        ({"zone": "Mars/Base"}, Decision("send")),
        ({"budget_paused_until": NOW}, Decision("send")),
        ({"safe_retry_until": NOW + HOUR}, Decision("send")),
        ({"slot_at": NOW}, Decision("send")),
        ({"slot_at": NOW + 48 * HOUR}, Decision("expire", "too_late")),
        ({"contact_free_at": NOW}, Decision("send")),
        ({"contact_free_at": NOW + 48 * HOUR}, Decision("expire", "too_late")),
        ({"tries": 4, "max_tries": 5}, Decision("send")),
    ],
    ids=repr_of,
)
def test_the_finer_cases(fact: dict[str, Any], decision: Decision) -> None:
    assert decide(replace(CLEAR, **fact), NOW) == decision


def test_quiet_hours_that_end_too_late_expire_it() -> None:
    facts = replace(CLEAR, quiet_windows=NIGHT, zone="Europe/Berlin", give_up_at=NOW + 5 * HOUR)
    assert decide(facts, NOW) == Decision("expire", "too_late")


def test_a_pause_beyond_the_limit_is_looked_at_once_more_at_the_limit() -> None:
    facts = replace(CLEAR, budget_paused_until=NOW + 99 * HOUR)
    assert decide(facts, NOW) == Decision("defer", "budget", facts.give_up_at)
    assert decide(facts, facts.give_up_at) == Decision("expire", "too_late")


def test_an_internal_act_passes_only_still_wanted() -> None:
    blocked = CLEAR
    for fact, _ in STEPS:
        blocked = replace(blocked, **fact)
    wanted = replace(
        blocked,
        is_internal=True,
        has_outcome=False,
        claim_is_held=True,
        requests=frozenset(),
        settled_meanwhile=False,
    )
    assert decide(wanted, NOW) == Decision("send")
    assert decide(replace(wanted, settled_meanwhile=True), NOW).action == "expire"
    assert decide(replace(wanted, has_outcome=True), NOW).action == "drop"


instants = st.timedeltas(-timedelta(days=9), timedelta(days=9)).map(lambda ago: NOW + ago)
clock = st.builds(time, st.integers(0, 23), st.integers(0, 59))
policies = st.builds(
    CatchUpPolicy,
    st.sampled_from(["all", "latest", "skip"]),
    st.timedeltas(timedelta(minutes=2), timedelta(days=7)),
    st.integers(1, 5),
    st.just(60),
)
facts_of_any_kind = st.builds(
    GateFacts,
    due_at=instants,
    give_up_at=instants,
    environment_accepted=st.booleans(),
    ownership=st.sampled_from(["live", "live", "live", "shadow", "dry_run"]),
    has_outcome=st.sampled_from([False, False, False, True]),
    claim_is_held=st.sampled_from([True, True, True, False]),
    requests=st.sets(st.sampled_from(["cancel", "supersede", "opt_out"]), max_size=1).map(
        frozenset
    ),
    settled_meanwhile=st.booleans(),
    tries=st.integers(0, 6),
    max_tries=st.one_of(st.none(), st.integers(1, 6)),
    catch_up=st.one_of(st.none(), policies),
    newer_due=st.integers(0, 3),
    suppressed=st.booleans(),
    consent=st.sampled_from(["granted", "refused", "undecided"]),
    consent_required=st.booleans(),
    quiet_windows=st.lists(st.builds(QuietWindow, clock, clock), max_size=2).map(tuple),
    zone=st.sampled_from([None, "Mars/Base", "UTC", "Europe/Berlin", "America/New_York"]),
    has_contact=st.booleans(),
    budget_paused_until=st.one_of(st.none(), instants),
    channel_enabled=st.booleans(),
    pause=st.sampled_from(["none", "none", "hold", "drop"]),
    safe_retry_until=st.one_of(st.none(), instants),
    slot_at=st.one_of(st.none(), instants),
    is_internal=st.just(False),
)


@given(facts_of_any_kind)
def test_every_decision_is_well_formed(facts: GateFacts) -> None:
    decision = decide(facts, NOW)
    vocabulary = {
        "expire": EXPIRE_REASONS,
        "hold": HOLD_CAUSES,
        "defer": DEFER_REASONS,
        "drop": DROP_REASONS,
        "send": {None},
    }
    assert decision.reason in vocabulary[decision.action]
    assert (decision.until is not None) == (decision.action == "defer")
    if decision.until is not None:
        assert NOW < decision.until <= facts.give_up_at


@given(facts_of_any_kind)
def test_nothing_is_sent_while_a_fact_blocks(facts: GateFacts) -> None:
    if decide(facts, NOW).action != "send":
        return
    assert facts.environment_accepted
    assert facts.ownership == "live"
    assert not facts.has_outcome
    assert facts.claim_is_held
    assert not facts.requests
    assert not facts.settled_meanwhile
    assert facts.give_up_at > NOW
    assert facts.max_tries is None or facts.tries < facts.max_tries
    assert not facts.suppressed
    assert facts.consent != "refused"
    assert facts.consent == "granted" or not facts.consent_required
    assert facts.has_contact
    assert facts.budget_paused_until is None or facts.budget_paused_until <= NOW
    assert facts.channel_enabled
    assert facts.pause == "none"
    assert facts.safe_retry_until is None or facts.safe_retry_until > NOW
    assert facts.slot_at is None or facts.slot_at <= NOW


@pytest.mark.parametrize("index", range(len(STEPS)))
@given(facts=facts_of_any_kind)
def test_one_blocking_fact_is_enough(index: int, facts: GateFacts) -> None:
    assert decide(replace(facts, **STEPS[index][0]), NOW).action != "send"
