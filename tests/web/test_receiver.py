"""The webhook receiver over HTTP: what is stored, what is refused, and what is answered when."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psycopg
import psycopg.conninfo
import pytest
from psycopg.rows import dict_row
from pydantic import SecretStr

from duebook.db.connect import connect_url
from duebook.settings import Settings
from tests.web.receiving import (
    STANDARD_SECRET,
    STRIPE_PREVIOUS,
    STRIPE_SECRET,
    Running,
    event,
    running,
    standard_headers,
    stripe_headers,
    with_database,
)

Conn = psycopg.Connection[Any]
MINUTES_5 = 300


def stored(conn: Conn) -> dict[str, int]:
    """How many rows each table of the receiver has."""
    counted = conn.execute(
        """
        select
            (select count(*) from duebook.webhook_receipt),
            (select count(*) from duebook.webhook_body),
            (select count(*) from duebook.pending_event)
        """
    ).fetchone()
    assert counted is not None
    return dict(zip(("receipts", "bodies", "pending"), counted, strict=True))


NOTHING = {"receipts": 0, "bodies": 0, "pending": 0}
ONE = {"receipts": 1, "bodies": 1, "pending": 1}


def test_a_signed_event_is_stored_with_its_bytes_and_waits_to_be_read(
    receiver: Running, conn: Conn
) -> None:
    body = b'{ "id" : "evt_1",\r\n "caf\\u00e9": "\xc3\xa9" }'
    headers = {**stripe_headers(body), "Authorization": "Bearer x", "Cookie": "a=b"}
    answer = receiver.post(body, headers)
    assert (answer.status_code, answer.json()) == (200, {"status": "stored"})
    with conn.cursor(row_factory=dict_row) as cursor:
        [row] = cursor.execute(
            """
            select r.endpoint, r.event_id, r.provider_account, r.scheme, b.headers, b.body
            from duebook.webhook_receipt as r
            join duebook.webhook_body as b using (endpoint, event_id, body_sha256)
            """
        ).fetchall()
    assert row == {
        "endpoint": "stripe",
        "event_id": "evt_1",
        "provider_account": "stripe",
        "scheme": "stripe",
        "headers": {
            "stripe-signature": headers["Stripe-Signature"],
            "content-type": "application/json",
        },
        "body": body,
    }
    assert stored(conn) == ONE


def test_a_webhook_that_arrives_twice_is_one_receipt_and_both_are_answered_200(
    receiver: Running, conn: Conn
) -> None:
    body = event("1")
    assert receiver.post(body).json() == {"status": "stored"}
    again = receiver.post(body, stripe_headers(body, at=int(time.time()) - 60))
    assert (again.status_code, again.json()) == (200, {"status": "duplicate"})
    assert stored(conn) == ONE


def test_one_event_at_two_endpoints_is_two_receipts_to_be_read_once(
    receiver: Running, conn: Conn
) -> None:
    body = event("1")
    assert [receiver.post(body, endpoint=e).status_code for e in ("stripe", "second")] == [200, 200]
    assert stored(conn) == {"receipts": 2, "bodies": 2, "pending": 1}


def test_another_body_under_the_same_id_is_kept_and_alerted_once(
    receiver: Running, conn: Conn
) -> None:
    receiver.post(event("1"))
    other = event("1", "charge.refunded")
    answers = [receiver.post(other) for _ in range(2)]
    assert [(a.status_code, a.json()["status"]) for a in answers] == [(200, "differs")] * 2
    assert stored(conn) == {"receipts": 1, "bodies": 2, "pending": 1}
    [[detail]] = conn.execute(
        "select detail from duebook.audit_event where action = 'webhook_body_differs'"
    ).fetchall()
    assert (detail["endpoint"], detail["event_id"]) == ("stripe", "evt_1")


def test_standard_webhooks_are_known_by_their_webhook_id(receiver: Running, conn: Conn) -> None:
    body = b'{"type": "x", "data": {}}'
    answer = receiver.post(body, standard_headers(body, "msg_7"), "standard")
    assert (answer.status_code, answer.json()) == (200, {"status": "stored"})
    assert conn.execute("select event_id from duebook.webhook_receipt").fetchall() == [("msg_7",)]


def test_a_secret_can_be_rotated(receiver: Running) -> None:
    current, previous = (STRIPE_SECRET,), (STRIPE_PREVIOUS,)
    several = ("whsec_unknown", STRIPE_SECRET)
    for number, secrets in enumerate((current, previous, several)):
        body = event(f"{number}")
        assert receiver.post(body, stripe_headers(body, secrets=secrets)).status_code == 200


def test_a_time_within_five_minutes_is_taken(receiver: Running) -> None:
    for number, seconds in enumerate((-MINUTES_5 + 60, MINUTES_5 - 60)):
        body, at = event(f"{number}"), int(time.time()) + seconds
        told = standard_headers(body, f"msg_{number}", at=at)
        assert receiver.post(body, stripe_headers(body, at=at)).status_code == 200
        assert receiver.post(body, told, "standard").status_code == 200


def test_a_time_further_off_is_refused_in_the_future_too(receiver: Running, conn: Conn) -> None:
    for seconds in (-MINUTES_5 - 30, MINUTES_5 + 90, 86_400):
        body, at = event("1"), int(time.time()) + seconds
        assert receiver.post(body, stripe_headers(body, at=at)).status_code == 401
        assert receiver.post(body, standard_headers(body, at=at), "standard").status_code == 401
    assert stored(conn) == NOTHING


def _bad_signatures() -> Iterator[tuple[str, str, Any]]:
    body, now = event("1"), int(time.time())
    good = stripe_headers(body, at=now)["Stripe-Signature"]
    for name, header in {
        "none": None,
        "empty": "",
        "garbage": "garbage",
        "no time": good.partition(",")[2],
        "two times": f"t={now},{good}",
        "only v0": good.replace("v1=", "v0="),
        "a space": good.replace(",", ", "),
        "not ascii": f"t={now},v1=\u00e9",
        "a huge time": f"t={10**30},v1=0",
        "another secret": stripe_headers(body, secrets=("whsec_x",))["Stripe-Signature"],
        "no secret at all": stripe_headers(body, secrets=("",))["Stripe-Signature"],
        "of another body": stripe_headers(event("2"))["Stripe-Signature"],
    }.items():
        headers = {} if header is None else {"Stripe-Signature": header.encode("latin-1")}
        yield f"stripe: {name}", "stripe", headers
    standard = standard_headers(body, at=now)
    for name, change in {
        "no id": {"webhook-id": ""},
        "another id": {"webhook-id": "msg_2"},
        "a fraction of a second": {"webhook-timestamp": f"{now}.5"},
        "garbage": {"webhook-signature": "garbage"},
        "two commas": {"webhook-signature": "v1,a,b"},
        "no base64": {"webhook-signature": "v1,\u00e9"},
        "an empty one": {"webhook-signature": "v1,"},
        "another version": {"webhook-signature": standard["webhook-signature"].replace("v1", "v2")},
    }.items():
        changed = {**standard, **change}
        headers = {key: value.encode("latin-1") for key, value in changed.items()}
        yield f"standard: {name}", "standard", headers


def test_what_is_not_signed_is_401_and_nothing_is_stored(receiver: Running, conn: Conn) -> None:
    answers = {
        name: receiver.post(event("1"), headers, endpoint).status_code
        for name, endpoint, headers in _bad_signatures()
    }
    assert answers == dict.fromkeys(answers, 401)
    assert len(answers) > 15
    assert stored(conn) == NOTHING


def test_a_body_that_is_written_anew_is_not_what_was_signed(receiver: Running) -> None:
    body = event("1")
    rewritten = json.dumps(json.loads(body)).encode()
    assert receiver.post(rewritten, stripe_headers(body)).status_code == 401


def test_a_signature_header_that_comes_twice_is_refused(receiver: Running) -> None:
    body = event("1")
    signature = stripe_headers(body)["Stripe-Signature"].encode()
    twice = [(b"Stripe-Signature", signature)] * 2
    answer = receiver.client.post("/webhooks/stripe", content=body, headers=twice)
    assert answer.status_code == 401


def test_dots_in_a_webhook_id_can_not_move_the_border_of_what_was_signed(
    receiver: Running, conn: Conn
) -> None:
    now = int(time.time())
    headers = standard_headers(b"x", f"msg.{now}", at=now)
    assert receiver.post(b"x", headers, "standard").status_code == 401
    moved = {**headers, "webhook-id": "msg"}
    assert receiver.post(f"{now}.x".encode(), moved, "standard").status_code == 200
    assert stored(conn)["receipts"] == 1


def test_a_signed_body_that_is_no_event_is_400(receiver: Running, conn: Conn) -> None:
    bodies = [b"", b"[]", b"7", b"{}", b'{"id": 7}', b'{"id": ""}', b'{"id": "a b"}']
    bodies += [b'{"id": "\\u0000"}', b'{"id": "evt_1"', b'{"id": "' + b"x" * 256 + b'"}']
    bodies += [b"[" * 100_000, b"9" * 10_000]
    assert [receiver.post(body).status_code for body in bodies] == [400] * len(bodies)
    assert stored(conn) == NOTHING


def test_a_signed_body_that_is_no_text_is_401_since_the_library_can_not_read_it(
    receiver: Running, conn: Conn
) -> None:
    headers = {**stripe_headers(b"x")}
    assert receiver.post(b"\xff\xfe", headers).status_code == 401
    assert stored(conn) == NOTHING


def test_an_endpoint_or_method_that_is_not_there_is_404_or_405(receiver: Running) -> None:
    assert receiver.post(event("1"), endpoint="other").status_code == 404
    assert receiver.post(event("1"), endpoint="stripe/more").status_code == 404
    assert receiver.client.get("/webhooks/stripe").status_code == 405
    for path in ("/docs", "/redoc", "/openapi.json", "/"):
        assert receiver.client.get(path).status_code == 404


def test_a_body_over_the_cap_is_413_whatever_its_length_claims(
    receiver: Running, conn: Conn
) -> None:
    body = event("1", note="x" * 256 * 1024)
    assert receiver.post(body).status_code == 413
    in_chunks = iter([body[:1000], body[1000:]])
    answer = receiver.client.post(
        "/webhooks/stripe", content=in_chunks, headers=stripe_headers(body)
    )
    assert answer.status_code == 413
    assert stored(conn) == NOTHING


def test_an_endless_body_is_answered_before_it_ends(receiver: Running) -> None:
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=60) as raw:
        raw.sendall(
            b"POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        for _ in range(5):
            raw.sendall(chunk)
        assert raw.recv(12) == b"HTTP/1.1 413"


def test_a_claimed_length_over_the_cap_is_413_before_any_of_it_came(receiver: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=60)
    connection.putrequest("POST", "/webhooks/stripe")
    connection.putheader("Content-Length", str(10**12))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_just_under_the_cap_is_taken(receiver: Running, conn: Conn) -> None:
    bare = len(event("1", note=""))
    body = event("1", note="x" * (256 * 1024 - bare))
    assert len(body) == 256 * 1024
    assert receiver.post(body).status_code == 200
    assert stored(conn) == ONE


def test_a_compressed_body_is_415(receiver: Running, conn: Conn) -> None:
    body = event("1")
    headers = {**stripe_headers(body), "Content-Encoding": "gzip"}
    assert receiver.post(gzip.compress(body), headers).status_code == 415
    assert stored(conn) == NOTHING


def test_when_the_database_is_away_it_says_when_to_come_back_and_then_takes_the_event(
    receiver: Running, conn: Conn, database_url: str, empty_database_url: str
) -> None:
    name = conn.info.dbname
    body = event("1")
    assert receiver.client.get("/health").status_code == 200
    with connect_url(empty_database_url, autocommit=True) as other:
        other.execute(f'alter database "{name}" allow_connections false'.encode())
        other.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s"
            " and application_name = 'duebook receiver'",
            [name],
        )
        with ThreadPoolExecutor() as pool:
            asked = [pool.submit(receiver.post, body), pool.submit(receiver.client.get, "/health")]
            answers = [one.result() for one in asked]
        other.execute(f'alter database "{name}" allow_connections true'.encode())
    assert [(a.status_code, a.headers.get("retry-after")) for a in answers] == [(503, "30")] * 2
    assert stored(conn) == NOTHING
    assert receiver.post(body).json() == {"status": "stored"}
    assert receiver.client.get("/health").json()["status"] == "ok"


def test_a_connection_that_was_cut_is_made_anew(receiver: Running, conn: Conn) -> None:
    assert receiver.post(event("1")).status_code == 200
    conn.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and application_name = 'duebook receiver'"
    )
    assert receiver.post(event("2")).status_code == 200


def test_a_database_of_another_version_is_not_healthy(
    receiving: Settings, empty_database_url: str
) -> None:
    with running(with_database(receiving, empty_database_url)) as receiver:
        assert receiver.client.get("/health").status_code == 503
        assert receiver.post(event("1")).status_code == 503


def test_its_role_may_hand_in_receipts_and_nothing_else(receiver: Running, conn: Conn) -> None:
    receiver.post(event("1"))
    conn.execute("set role duebook_receiver")
    for statement in (
        "select * from duebook.webhook_receipt",
        "insert into duebook.pending_event (provider_account, event_id, endpoint)"
        " values ('a', 'b', 'c')",
        "select duebook.cancel_intent('a', 'b', 'c', 'd')",
        "select * from duebook_reports.intents",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(statement.encode())


def test_a_receipt_is_durable_however_lax_the_server_is(conn: Conn) -> None:
    call = "select duebook.record_receipt('e', %s, 'a', 'stripe', '{}', 'x')"
    for setting, meant in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        conn.execute(f"set synchronous_commit = {setting}".encode())
        with conn.transaction():
            conn.execute(call.encode(), [setting])
            assert conn.execute("show synchronous_commit").fetchone() == (meant,)


def test_standard_webhooks_tells_that_secret_apart(receiver: Running) -> None:
    body = b"{}"
    wrong = standard_headers(body, secret=STANDARD_SECRET[:-4] + "AAA=")
    assert receiver.post(body, wrong, "standard").status_code == 401


def test_deliveries_of_one_event_at_the_same_moment_are_one_receipt(
    receiver: Running, conn: Conn
) -> None:
    body = event("1")

    def deliver(endpoint: str) -> httpx.Response:
        """As a provider does: again, when the machine is too busy to answer in time."""
        for _ in range(20):
            answer = receiver.post(body, endpoint=endpoint)
            if answer.status_code != 503:
                break
        return answer

    with ThreadPoolExecutor(16) as pool:
        asked = [
            pool.submit(deliver, endpoint) for endpoint in ("stripe", "second") for _ in range(16)
        ]
        answers = [one.result() for one in asked]
    assert {answer.status_code for answer in answers} == {200}
    verdicts = Counter(answer.json()["status"] for answer in answers)
    assert verdicts == {"stored": 2, "duplicate": 30}
    assert stored(conn) == {"receipts": 2, "bodies": 2, "pending": 1}


def test_a_login_of_its_own_needs_no_other_right(
    receiving: Settings, conn: Conn, database_url: str
) -> None:
    name = f"edge_{conn.info.dbname}"
    conn.execute(f"create role {name} login password 'x' in role duebook_receiver".encode())
    try:
        parts = {"user": name, "password": "x"}
        url = psycopg.conninfo.make_conninfo(database_url, **parts)
        own = receiving.model_copy(update={"receiver_database_url": SecretStr(url)})
        with running(own) as receiver:
            assert receiver.client.get("/health").status_code == 200
            assert receiver.post(event("1")).json() == {"status": "stored"}
    finally:
        conn.execute(f"drop role {name}".encode())
