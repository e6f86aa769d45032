"""The same business action gives the same key, in this code and in docs/operation-keys.json."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duebook.domain.keys import (
    EvidenceKey,
    HoldExpiryKey,
    KeyFormatError,
    KeyPartError,
    OperationKey,
    ReminderKey,
    ResendKey,
    TransitionKey,
    parse_key,
)

PUBLISHED = json.loads(
    (Path(__file__).parents[2] / "docs" / "operation-keys.json").read_text(encoding="utf-8")
)


def build(form: str, parts: dict[str, Any]) -> OperationKey:
    parts = dict(parts)
    for name in ("expected_on", "nominal_on"):
        if name in parts:
            parts[name] = date.fromisoformat(parts[name])
    if "expires_at" in parts:
        parts["expires_at"] = datetime.fromisoformat(parts["expires_at"])
    if "original" in parts:
        parts["original"] = parse_key(parts["original"])
    makers: dict[str, Any] = {
        "evidence": EvidenceKey,
        "transition": TransitionKey,
        "reminder": ReminderKey,
        "hold_expiry": HoldExpiryKey,
        "resend": ResendKey,
    }
    key: OperationKey = makers[form](**parts)
    return key


@pytest.mark.parametrize("vector", PUBLISHED["valid"], ids=lambda vector: vector["key"])
def test_published_vectors_are_what_the_code_makes_and_reads(vector: dict[str, Any]) -> None:
    key = build(vector["form"], vector["parts"])
    assert str(key) == vector["key"]
    assert parse_key(vector["key"]) == key


@pytest.mark.parametrize("vector", PUBLISHED["refused"], ids=lambda vector: vector["why"])
def test_published_refusals_are_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(KeyFormatError):
        parse_key(vector["key"])


def test_every_form_has_vectors() -> None:
    assert {vector["form"] for vector in PUBLISHED["valid"]} == set(PUBLISHED["forms"])


part = st.text(
    alphabet=st.one_of(
        st.sampled_from(":%3A25v"),
        st.characters(exclude_categories=("Cc", "Cs")),
    ),
    min_size=1,
    max_size=40,
)
name = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
count = st.integers(min_value=1, max_value=10**18 - 1)
first_keys = st.one_of(
    st.builds(
        EvidenceKey,
        name.filter(lambda kind: kind not in {"missing", "cleared", "remind", "expire", "resend"}),
        name,
        part,
        part,
        part,
        count,
    ),
    st.builds(
        TransitionKey, st.sampled_from(["missing", "cleared"]), name, part, part, st.dates(), count
    ),
    st.builds(ReminderKey, name, part, st.dates()),
    st.builds(HoldExpiryKey, part, st.datetimes(timezones=st.just(UTC))),
)
keys = st.one_of(first_keys, st.builds(ResendKey, count, first_keys))


@given(keys)
def test_a_key_is_read_back_as_what_it_was_made_from(key: OperationKey) -> None:
    assert parse_key(str(key)) == key


@given(keys, keys)
def test_two_actions_never_share_a_key(one: OperationKey, other: OperationKey) -> None:
    assert (one == other) == (str(one) == str(other))


@given(st.text(max_size=60))
def test_any_text_is_a_canonical_key_or_refused_cleanly(text: str) -> None:
    try:
        key = parse_key(text)
    except KeyFormatError:
        return
    assert str(key) == text


def test_an_instant_gives_one_key_in_every_zone() -> None:
    at = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
    elsewhere = at.astimezone(timezone(timedelta(hours=-8)))
    assert str(HoldExpiryKey("h", at)) == str(HoldExpiryKey("h", elsewhere))


@pytest.mark.parametrize(
    "key",
    [
        EvidenceKey("payment_settled", "email", "stripe", "", "e", 1),
        EvidenceKey("payment_settled", "email", "stripe", "p", "e\r\n", 1),
        EvidenceKey("payment_settled", "email", "stripe", "p", "e" * 201, 1),
        EvidenceKey("payment_settled", "email", "stripe", "p", "e", 0),
        EvidenceKey("remind", "email", "stripe", "p", "e", 1),
        EvidenceKey("Payment", "email", "stripe", "p", "e", 1),
        TransitionKey("lost", "email", "stripe", "p", date(2026, 1, 1), 1),
        TransitionKey("missing", "email", "stripe", "p", datetime(2026, 1, 1, tzinfo=UTC), 1),
        HoldExpiryKey("h", datetime(2026, 1, 1)),  # noqa: DTZ001
    ],
)
def test_a_part_that_can_not_stand_in_a_key_is_refused(key: OperationKey) -> None:
    with pytest.raises(KeyPartError):
        str(key)
