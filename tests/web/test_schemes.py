"""Every scheme over HTTP: what it signed is stored once, and nothing else however it is mutated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duebook.connections import ConnectionSpec
from duebook.errors import UnavailableError
from duebook.services.receive import ReceiptStore
from duebook.services.signatures import SCHEMES
from duebook.services.signing.base import SignatureRefused
from duebook.services.signing.certificates import CertificateKeys
from duebook.settings import Settings
from duebook.web.app import make_app
from duebook.web.edge import parse_proxies
from duebook.web.serve import make_receiver
from tests.due_work import value
from tests.web import signing
from tests.web.receiving import CONFIGURATION, CONNECTIONS, Running, running, with_database

Conn = psycopg.Connection[Any]

_ENDPOINT = """
[webhooks.at_{0}]
provider_account = "adyen"
scheme = "{0}"
connection = "of_{0}"
url = "{1}"
"""


class PayPal:
    """What PayPal's certificate host answers, and what it was asked for."""

    def __init__(self) -> None:
        self.answers: dict[str, httpx.Response] = {
            signing.CERTIFICATE_URL: httpx.Response(200, content=signing.paypal_certificate())
        }
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(str(request.url))
        return self.answers.get(str(request.url), httpx.Response(404))


@pytest.fixture
def paypal() -> PayPal:
    return PayPal()


def connections() -> dict[str, ConnectionSpec]:
    made = dict(CONNECTIONS)
    for scheme in SCHEMES:
        one, two = signing.secrets_of(scheme)
        extra = {"previous": two, "ca": signing.authority_pem()}
        made[f"of_{scheme}"] = ConnectionSpec(f"of_{scheme}", "http", password=one, extra=extra)
    return made


@pytest.fixture
def receiver(configured: Settings, database_url: str, paypal: PayPal) -> Iterator[Running]:
    assert configured.config_file is not None
    blocks = "".join(_ENDPOINT.format(scheme, signing.URL) for scheme in SCHEMES)
    configured.config_file.write_text(CONFIGURATION + blocks)
    keys = CertificateKeys(transport=httpx.MockTransport(paypal))
    with running(
        with_database(configured, database_url), connections=connections(), certificates=keys
    ) as started:
        yield started


def receipts(conn: Conn) -> list[tuple[str, str]]:
    return conn.execute(
        "select endpoint, event_id from duebook.webhook_receipt order by 1, 2"
    ).fetchall()


def post(receiver: Running, scheme: str, headers: Any, body: bytes) -> httpx.Response:
    return receiver.client.post(f"/webhooks/at_{scheme}", content=body, headers=headers)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_it_signed_is_stored_once_by_either_secret(
    conn: Conn, receiver: Running, scheme: str
) -> None:
    for name, secret in zip("12", signing.secrets_of(scheme), strict=True):
        headers, body = signing.signed(scheme, secret, name=name)
        for _ in range(2):
            answer = post(receiver, scheme, headers, body)
            assert answer.status_code == 200, answer.text
    assert len(receipts(conn)) == 2
    stored = value(conn, "select array_agg(scheme) from duebook.webhook_receipt")
    assert stored == [scheme] * 2
    headers, body = signing.signed(scheme, signing.other_secret(scheme), name="3")
    assert post(receiver, scheme, headers, body).status_code == 401
    assert len(receipts(conn)) == 2


def test_a_body_of_adyen_is_a_receipt_an_item_and_is_accepted_by_its_word(
    conn: Conn, receiver: Running
) -> None:
    secret = signing.secrets_of("adyen")[0]
    items = [
        signing.adyen_sign(signing.adyen_item(pspReference=f"P{number}"), secret)
        for number in range(3)
    ]
    answer = post(receiver, "adyen", {}, signing.adyen_body(items))
    assert (answer.status_code, answer.text) == (200, "[accepted]")
    # One of them again, in other company, is no other body of the same event.
    more = signing.adyen_sign(signing.adyen_item(pspReference="P9"), secret)
    assert post(receiver, "adyen", {}, signing.adyen_body([items[1], more])).status_code == 200
    assert [event for _, event in receipts(conn)] == [
        f"AUTHORISATION:P{number}:true" for number in (0, 1, 2, 9)
    ]
    assert value(conn, "select count(*) from duebook.webhook_body") == 4
    # One forged among them, and none is stored.
    forged = {**more, "pspReference": "P10"}
    fresh = signing.adyen_sign(signing.adyen_item(pspReference="P11"), secret)
    assert post(receiver, "adyen", {}, signing.adyen_body([fresh, forged])).status_code == 401
    assert len(receipts(conn)) == 4


class TestPayPalsCertificate:
    def send(self, receiver: Running, **changed: str) -> int:
        headers, body = signing.signed("paypal", signing.secrets_of("paypal")[0])
        return post(receiver, "paypal", {**headers, **changed}, body).status_code

    def test_it_is_fetched_once(self, receiver: Running, paypal: PayPal) -> None:
        assert [self.send(receiver), self.send(receiver)] == [200, 200]
        assert paypal.asked == [signing.CERTIFICATE_URL]

    @pytest.mark.parametrize(
        "url",
        [
            "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1",
            "https://evil.example/v1/notifications/certs/CERT-1",
            "http://api.paypal.com/v1/notifications/certs/CERT-1",
            "https://api.paypal.com@evil.example/v1/notifications/certs/CERT-1",
            "https://api-x.paypal.com/v1/notifications/certs/CERT-1",
            "https://api.paypal.com:444/v1/notifications/certs/CERT-1",
            "https://api.paypal.com/v1/notifications/certs/../../x",
            "https://api.paypal.com/v1/notifications/certs/CERT-1?x=1",
            "file:///etc/passwd",
            "",
        ],
    )
    def test_nothing_else_is_ever_asked_for(
        self, receiver: Running, paypal: PayPal, url: str
    ) -> None:
        assert self.send(receiver, **{"paypal-cert-url": url}) == 401
        assert paypal.asked == []

    @pytest.mark.parametrize(
        ("content", "status"),
        [
            (b"no certificate", 401),
            (b"x" * 100_000, 401),
            (signing.paypal_certificate(begins=-60), 401),
            (signing.paypal_certificate(begins=2), 401),
            (signing.self_signed_certificate(), 401),
            (signing.paypal_certificate(issuer="Another CA"), 401),
            (signing.paypal_certificate(name="messageverificationcerts.paypal.com.example"), 401),
            (signing.paypal_certificate(name="shop.example"), 401),
        ],
        ids=[
            *("garbage", "endless", "expired", "not yet valid"),
            *("self-signed", "of another CA", "of a longer name", "of another name"),
        ],
    )
    def test_one_that_can_not_be_believed_is_refused(
        self, receiver: Running, paypal: PayPal, content: bytes, status: int
    ) -> None:
        paypal.answers[signing.CERTIFICATE_URL] = httpx.Response(200, content=content)
        assert self.send(receiver) == status

    def test_when_it_can_not_be_fetched_the_event_is_to_come_again(
        self, receiver: Running, paypal: PayPal, conn: Conn
    ) -> None:
        paypal.answers[signing.CERTIFICATE_URL] = httpx.Response(500)
        assert self.send(receiver) == 503
        paypal.answers[signing.CERTIFICATE_URL] = httpx.Response(302, headers={"location": "/x"})
        assert self.send(receiver) == 503
        paypal.answers[signing.CERTIFICATE_URL] = httpx.Response(
            200, content=signing.paypal_certificate()
        )
        assert self.send(receiver) == 200
        assert len(receipts(conn)) == 1

    def test_one_that_a_ca_in_between_issued_leads_to_the_root(
        self, receiver: Running, paypal: PayPal
    ) -> None:
        paypal.answers[signing.CERTIFICATE_URL] = httpx.Response(
            200, content=signing.paypal_chain()
        )
        assert self.send(receiver) == 200

    def test_nobody_makes_it_ask_without_end(self, receiver: Running, paypal: PayPal) -> None:
        place = signing.CERTIFICATE_URL
        sent = [self.send(receiver, **{"paypal-cert-url": f"{place}{n}"}) for n in range(20)]
        assert sent[:5] == [401] * 5
        assert set(sent[5:]) == {503}
        assert len(paypal.asked) == 5

    def test_what_strangers_name_does_not_silence_paypal(
        self, receiver: Running, paypal: PayPal
    ) -> None:
        assert self.send(receiver) == 200
        for n in range(20):
            self.send(receiver, **{"paypal-cert-url": f"{signing.CERTIFICATE_URL}{n}"})
        assert self.send(receiver) == 200


class TestKeptKeys:
    """The certificates' keys by a clock of their own."""

    def test_a_key_outlives_a_failed_renewal_but_not_its_certificate(self, paypal: PayPal) -> None:
        async def ask() -> None:
            now = [float(signing.now_s())]
            keys = CertificateKeys(clock=lambda: now[0], transport=httpx.MockTransport(paypal))
            place, roots = signing.CERTIFICATE_URL, (signing.authority(signing.CA)[0],)
            first = await keys.key_of(place, roots)
            paypal.answers[place] = httpx.Response(500)
            now[0] += 2 * 86_400
            assert await keys.key_of(place, roots) == first
            assert len(paypal.asked) == 2
            now[0] += 30 * 86_400
            with pytest.raises(UnavailableError):
                await keys.key_of(place, roots)

        asyncio.run(ask())

    def test_one_that_paypal_took_away_is_not_believed_any_more(self, paypal: PayPal) -> None:
        async def ask() -> None:
            now = [float(signing.now_s())]
            keys = CertificateKeys(clock=lambda: now[0], transport=httpx.MockTransport(paypal))
            place, roots = signing.CERTIFICATE_URL, (signing.authority(signing.CA)[0],)
            await keys.key_of(place, roots)
            del paypal.answers[place]
            now[0] += 2 * 86_400
            with pytest.raises(SignatureRefused):
                await keys.key_of(place, roots)
            paypal.answers[place] = httpx.Response(500)
            with pytest.raises(UnavailableError):
                await keys.key_of(place, roots)

        asyncio.run(ask())

    def test_a_key_that_is_kept_waits_for_nobody_elses(self, paypal: PayPal) -> None:
        async def ask() -> None:
            stuck, begun = asyncio.Event(), asyncio.Event()

            async def answer(request: httpx.Request) -> httpx.Response:
                if str(request.url) == signing.CERTIFICATE_URL:
                    return paypal(request)
                begun.set()
                await stuck.wait()
                return httpx.Response(404)

            keys = CertificateKeys(transport=httpx.MockTransport(answer))
            roots = (signing.authority(signing.CA)[0],)
            await keys.key_of(signing.CERTIFICATE_URL, roots)
            slow = asyncio.ensure_future(keys.key_of(f"{signing.CERTIFICATE_URL}0", roots))
            await begun.wait()
            async with asyncio.timeout(2):
                await keys.key_of(signing.CERTIFICATE_URL, roots)
            stuck.set()
            with pytest.raises(SignatureRefused):
                await slow

        asyncio.run(ask())

    def test_without_a_ca_of_its_own_those_of_tls_decide(self, paypal: PayPal) -> None:
        keys = CertificateKeys(transport=httpx.MockTransport(paypal))
        with pytest.raises(SignatureRefused, match="no CA known here"):
            asyncio.run(keys.key_of(signing.CERTIFICATE_URL))


@pytest.mark.parametrize("ca", ["no certificate", 7, ["x"]])
def test_a_ca_that_is_none_is_said_in_one_line(configured: Settings, ca: object) -> None:
    spec = ConnectionSpec("stripe_webhook", "http", password="x", extra={"ca": ca})
    broken = make_receiver(configured, lambda name: spec, "postgresql://nowhere").broken
    assert "`ca` of its connection holds no certificate" in str(broken["stripe"])


_HEADERS = sorted({name for scheme in SCHEMES.values() for name in scheme.headers})
_TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=80) | st.sampled_from(
    ["v1,", "sha256=", "t=1", "AAAA", "1", "2026-11-30T02:00:00Z"]
)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, dict[str, str], bytes]:
    """A signed request with something changed: bytes, a header, the endpoint, the time."""
    scheme = draw(st.sampled_from(sorted(SCHEMES)))
    at = signing.now_s() + draw(st.sampled_from([0, 0, 0, -400, 400, -(10**9)]))
    headers, body = signing.signed(scheme, signing.secrets_of(scheme)[0], name="m", at=at)
    changed = bytearray(body)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(changed)))
        changed[place : place + draw(st.integers(0, 4))] = draw(st.binary(max_size=6))
    for name in draw(st.lists(st.sampled_from(_HEADERS), max_size=2)):
        if draw(st.booleans()):
            headers.pop(name, None)
        else:
            headers[name] = draw(_TEXTS)
    endpoint = draw(st.sampled_from([scheme, scheme, scheme, *sorted(SCHEMES)]))
    return endpoint, headers, bytes(changed)


def _mutate(receiver: Running, conn: Conn, examples: int) -> None:
    genuine = {
        scheme: signing.signed(scheme, signing.secrets_of(scheme)[0], name="m")[1]
        for scheme in SCHEMES
    }
    statuses: set[int] = set()

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(mutated())
    def send(request: tuple[str, dict[str, str], bytes]) -> None:
        endpoint, headers, body = request
        answer = post(receiver, endpoint, headers, body)
        statuses.add(answer.status_code)
        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        if answer.status_code == 503:
            # Only ever the certificate that can't be had: nothing was verified, nothing stored.
            assert endpoint == "paypal"

    send()
    assert {200, 401} <= statuses
    # Whatever was stored says, in what is signed, just what the provider said.
    for scheme, body in conn.execute(
        "select scheme, body from duebook.webhook_body as b"
        " join duebook.webhook_receipt using (endpoint, event_id)"
    ):
        if scheme == "adyen":
            known = signing.adyen_signed_parts(genuine[scheme])[0]
            assert signing.adyen_signed_part(body) == known
        else:
            assert body == genuine[scheme]


def test_mutated_requests_are_refused(receiver: Running, conn: Conn) -> None:
    _mutate(receiver, conn, 400)


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_ten_thousand_mutated_requests_are_refused(receiver: Running, conn: Conn) -> None:
    _mutate(receiver, conn, 10_000)


def described() -> dict[str, Any]:
    """The application's own description of what it serves."""
    app: FastAPI = make_app({}, {}, ReceiptStore("postgresql://x"), parse_proxies(()))
    document: dict[str, Any] = json.loads(json.dumps(app.openapi()))
    return document


schema = schemathesis.openapi.from_dict(described())


@schema.parametrize()
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_the_description_allows_is_answered(case: Any, receiver: Running) -> None:
    answer = case.call(base_url=receiver.address)
    assert answer.status_code < 500
