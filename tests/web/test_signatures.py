"""Signatures against published vectors, at the time that each was made for."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import time_machine

from duebook.services.signatures import SIGNED_HEADERS, SignatureRefused, require_secret, verify

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "webhooks" / "vectors.jsonl"
SCHEMES: dict[str, Any] = {"standard-webhooks-v1": "standard", "stripe-v1": "stripe"}
BODY = b'{"id": "evt_1"}'


def test_every_published_vector_is_judged_as_it_should_be() -> None:
    if not VECTORS.exists():
        pytest.skip("the vectors are not beside this checkout")
    lines = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    vectors = [vector for vector in lines if vector["scheme"] in SCHEMES]
    assert len(vectors) > 15
    wrong = [
        (vector["scheme"], vector["source"], vector.get("why"))
        for vector in vectors
        if is_verified(vector) is not vector["valid"]
    ]
    assert wrong == []


def is_verified(vector: dict[str, Any]) -> bool:
    headers = {name.lower(): value for name, value in vector["headers"].items()}
    # The library of Standard Webhooks looks at the clock itself.
    with time_machine.travel(datetime.fromtimestamp(vector["now"], UTC), tick=False):
        try:
            verify(
                SCHEMES[vector["scheme"]],
                [vector["secret"]],
                headers,
                vector["body"].encode(),
                vector["now"],
            )
        except SignatureRefused:
            return False
    return True


@pytest.mark.parametrize("scheme", ["stripe", "standard"])
def test_a_missing_header_is_refused(scheme: Any) -> None:
    headers = dict.fromkeys(SIGNED_HEADERS[scheme], "x")
    for name in headers:
        rest = {other: value for other, value in headers.items() if other != name}
        with pytest.raises(SignatureRefused, match="missing"):
            verify(scheme, ["whsec_x"], rest, BODY, 0)


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
