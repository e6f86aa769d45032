"""Whatever is sent: no answer of 500 or above, and nothing stored."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import psycopg
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.web.receiving import Running, event, standard_headers, stripe_headers

NAMES = (
    b"Stripe-Signature",
    b"webhook-id",
    b"webhook-timestamp",
    b"webhook-signature",
    b"Content-Type",
    b"Content-Encoding",
    b"X-Forwarded-Proto",
    b"X-Forwarded-For",
    b"Expect",
    b"Transfer-Encoding",
    b"Content-Length",
)
NOW = int(time.time())
LINE = st.binary(max_size=60).map(lambda text: text.replace(b"\r", b"").replace(b"\n", b""))
SIGNED = st.sampled_from(
    [
        *stripe_headers(event("1")).values(),
        *standard_headers(b"{}").values(),
        f"t={NOW},v1=",
        f"t={NOW},v1=0" * 3,
        f"v1,{'A' * 44}",
        str(NOW),
        "gzip",
        "chunked",
        "http",
    ]
).map(str.encode)
HEADERS = st.lists(st.tuples(st.sampled_from(NAMES), SIGNED | LINE), max_size=6)
PATHS = st.sampled_from([b"stripe", b"second", b"standard", b"other", b"%00", b"..%2f", b""])
RELAXED = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def exchange(port: int, request: bytes) -> int:
    """The status of the answer; 0 when the connection was closed without one."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall(request)
        raw.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := raw.recv(4096):
            answer += chunk
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else 0


def count(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute(
        "select (select count(*) from duebook.webhook_receipt)"
        " + (select count(*) from duebook.webhook_body)"
        " + (select count(*) from duebook.pending_event)"
    ).fetchone()
    assert row is not None
    total: int = row[0]
    return total


def test_what_nobody_signed_is_refused_whatever_it_is(
    receiver: Running, conn: psycopg.Connection[Any]
) -> None:
    @RELAXED
    @given(PATHS, HEADERS, st.binary(max_size=400))
    @example(b"stripe", [(b"Stripe-Signature", f"t={NOW},v1=\xe9".encode("latin-1"))], b"\xff")
    @example(b"standard", [(b"Transfer-Encoding", b"chunked")], b"5\r\nabcde\r\n")
    def sent(path: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        lines = [b"POST /webhooks/" + path + b" HTTP/1.1", b"Host: x", b"Connection: close"]
        lines += [name + b": " + value for name, value in headers]
        if not any(name in (b"Content-Length", b"Transfer-Encoding") for name, _ in headers):
            lines.append(b"Content-Length: %d" % len(body))
        status = exchange(receiver.port, b"\r\n".join(lines) + b"\r\n\r\n" + body)
        assert status == 0 or 400 <= status < 500, status

    sent()
    assert count(conn) == 0


def test_what_stripe_signed_and_is_no_event_is_refused_too(
    receiver: Running, conn: psycopg.Connection[Any]
) -> None:
    documents = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["data", "type"]), inner),
        max_leaves=5,
    )
    texts = st.text(max_size=50) | documents.map(json.dumps)

    @RELAXED
    @given(texts.map(lambda text: text.encode("utf-8", "replace")))
    def sent(body: bytes) -> None:
        assert receiver.post(body).status_code == 400

    sent()
    assert count(conn) == 0
