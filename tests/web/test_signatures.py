"""Signatures against published vectors, at the time that each was made for."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from duebook.services.signatures import SCHEMES, require_secret, verify
from duebook.services.signing.base import BodyRefused, SignatureRefused, SignedRequest
from tests.web import signing

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "webhooks" / "vectors.jsonl"
NAMES: dict[str, Any] = {
    "standard-webhooks-v1": "standard",
    "standard-webhooks-v1a": "standard",
    "stripe-v1": "stripe",
    "github-sha256": "github",
    "twilio-sha1": "twilio",
    "square-hmacsha256": "square",
    "adyen-hmac": "adyen",
    "adyen-header-hmac": "adyen_platform",
    "paypal-rsa": "paypal",
}
BODY = b'{"id": "evt_1"}'


def test_every_published_vector_is_judged_as_it_should_be() -> None:
    if not VECTORS.exists():
        pytest.skip("the vectors are not beside this checkout")
    vectors = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    assert {vector["scheme"] for vector in vectors} == NAMES.keys()
    wrong = [
        (vector["scheme"], vector["source"], vector.get("why"))
        for vector in vectors
        if is_verified(vector) is not vector["valid"]
    ]
    assert wrong == []


def is_verified(vector: dict[str, Any]) -> bool:
    headers = {name.lower(): value for name, value in vector["headers"].items()}
    # Where no time is signed, any will do.
    at = vector.get("now", _sent_at(headers))
    pem = vector.get("public_key_pem")
    key = None if pem is None else serialization.load_pem_public_key(pem.encode())
    assert key is None or isinstance(key, RSAPublicKey)
    body = vector["body"] if "body" in vector else urlencode(vector["params"])
    request = SignedRequest(headers, body.encode(), vector.get("url"), key)
    secret = vector.get("secret") or vector.get("public_key") or vector["webhook_id"]
    # The library of Standard Webhooks looks at the clock itself.
    with time_machine.travel(datetime.fromtimestamp(at, UTC), tick=False):
        try:
            verify(NAMES[vector["scheme"]], [secret], request, at)
        except SignatureRefused:
            return False
        except BodyRefused:
            # Signed, and nothing that is an event: the published example of Twilio is a call.
            return True
    return True


def _sent_at(headers: dict[str, str]) -> float:
    sent = headers.get("paypal-transmission-time")
    return datetime.fromisoformat(sent).timestamp() if sent else 0.0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_missing_header_is_refused(scheme: Any) -> None:
    headers = dict.fromkeys(SCHEMES[scheme].headers, "x")
    for name in headers:
        rest = {other: value for other, value in headers.items() if other != name}
        with pytest.raises(SignatureRefused, match="missing"):
            verify(scheme, ["whsec_x"], SignedRequest(rest, BODY), 0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_each_signs_verifies_by_either_secret(scheme: Any) -> None:
    one, two = signing.secrets_of(scheme)
    for secret in (one, two):
        headers, body = signing.signed(scheme, secret)
        request = signing.request_of(scheme, headers, body)
        assert verify(scheme, [one, two], request, signing.now_s())
        with pytest.raises(SignatureRefused):
            verify(scheme, [signing.other_secret(scheme)], request, signing.now_s())


@given(scheme=st.sampled_from(sorted(SCHEMES)), data=st.data())
@settings(max_examples=400, deadline=None)
def test_no_changed_byte_goes_unnoticed(scheme: Any, data: st.DataObject) -> None:
    secret = signing.secrets_of(scheme)[0]
    headers, body = signing.signed(scheme, secret)
    place = data.draw(st.integers(0, len(body) - 1))
    changed = bytearray(body)
    changed[place] ^= data.draw(st.integers(1, 255))
    request = signing.request_of(scheme, headers, bytes(changed))
    try:
        events = verify(scheme, [secret], request, signing.now_s())
    except (SignatureRefused, BodyRefused):
        return
    # Adyen leaves most of an item unsigned: what is signed of it has not changed.
    assert scheme == "adyen"
    known = [signing.adyen_signed_part(event.body) for event in events]
    assert known == signing.adyen_signed_parts(body)


@given(st.sampled_from(sorted(SCHEMES)), st.dictionaries(st.text(), st.text()), st.binary())
@settings(deadline=None)
def test_hostile_headers_and_bodies_are_refused_and_nothing_else(
    scheme: Any, headers: dict[str, str], body: bytes
) -> None:
    stated = dict(zip(SCHEMES[scheme].headers, headers.values(), strict=False))
    request = signing.request_of(scheme, {**headers, **stated}, body)
    with pytest.raises((SignatureRefused, BodyRefused)):
        verify(scheme, signing.secrets_of(scheme), request, signing.now_s())


def test_a_colon_can_not_be_moved_from_one_field_of_adyen_to_the_next() -> None:
    secret = signing.secrets_of("adyen")[0]
    item = signing.adyen_item(pspReference="A", originalReference="B:C")
    moved = {**item, "pspReference": "A:B", "originalReference": "C"}
    for each in (item, moved):
        body = signing.adyen_body([signing.adyen_sign(each, secret)])
        with pytest.raises(SignatureRefused):
            verify("adyen", [secret], SignedRequest({}, body), 0)


def test_every_item_of_adyen_is_an_event_and_one_forged_refuses_all() -> None:
    secret = signing.secrets_of("adyen")[0]
    items = [
        signing.adyen_sign(signing.adyen_item(pspReference=f"P{number}"), secret)
        for number in range(3)
    ]
    events = verify("adyen", [secret], SignedRequest({}, signing.adyen_body(items)), 0)
    assert [event.event_id for event in events] == [
        f"AUTHORISATION:P{number}:true" for number in range(3)
    ]
    items[2]["amount"] = {"currency": "EUR", "value": 1}
    with pytest.raises(SignatureRefused):
        verify("adyen", [secret], SignedRequest({}, signing.adyen_body(items)), 0)


@pytest.mark.parametrize(
    ("scheme", "secret"),
    [("stripe", ""), ("stripe", "  "), ("standard", "whsec_"), ("standard", "whsec_not base64!")],
)
def test_a_secret_that_can_verify_nothing_is_refused_and_not_repeated(
    scheme: Any, secret: str
) -> None:
    with pytest.raises(ValueError, match=r"empty|base64") as refused:
        require_secret(scheme, secret)
    assert "not base64!" not in str(refused.value)
