"""Requests as each provider signs them, by its own library where there is one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final
from urllib.parse import urlencode

import standardwebhooks
import stripe
from Adyen.util import generate_notification_sig, generate_payload_sig
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from twilio.request_validator import RequestValidator

from duebook.services.signing.base import SignedRequest

URL: Final = "https://shop.example/webhooks/it"
CERTIFICATE_URL: Final = "https://api.paypal.com/v1/notifications/certs/CERT-1"
CA: Final = "The CA of the tests"
_USAGES: Final = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
_PSP: Final = ("pspReference", "originalReference", "merchantAccountCode", "merchantReference")


def secrets_of(scheme: str) -> tuple[str, str]:
    """The current secret of a scheme and the one before."""
    if scheme in ("adyen", "adyen_platform"):
        return "AB" * 32, "CD" * 32
    if scheme == "standard":
        return _standard(b"one secret of thirty-two bytes 1"), _standard(b"another of thirty-two!")
    return "the current secret", "the secret before"


def other_secret(scheme: str) -> str:
    """A secret that signed nothing."""
    if scheme in ("adyen", "adyen_platform"):
        return "EF" * 32
    return _standard(b"nobody's secret") if scheme == "standard" else "nobody's secret"


def _standard(raw: bytes) -> str:
    return "whsec_" + base64.b64encode(raw).decode()


def signed(
    scheme: str, secret: str, *, name: str = "1", url: str = URL, at: int | None = None
) -> tuple[dict[str, str], bytes]:
    """Headers and body of an event with the id `name`."""
    body = body_of(scheme, secret, name)
    return {**headers_of(scheme, secret, body, name=name, url=url, at=at or now_s())}, body


def now_s() -> int:
    """Epoch seconds: what the receiver and some of the libraries look at."""
    return int(time.time())


def body_of(scheme: str, secret: str, name: str) -> bytes:
    """What a provider of this scheme tells."""
    if scheme == "adyen":
        return adyen_body([adyen_sign(adyen_item(pspReference=f"P{name}"), secret)])
    if scheme == "twilio":
        return urlencode({"MessageSid": f"SM{name}", "MessageStatus": "delivered"}).encode()
    identity = "event_id" if scheme == "square" else "id"
    return json.dumps({identity: f"evt_{name}", "type": "payment.updated"}).encode()


def headers_of(
    scheme: str, secret: str, body: bytes, *, name: str, url: str, at: int
) -> Mapping[str, str]:
    """The signature of a body."""
    if scheme == "stripe":
        return {
            "stripe-signature": stripe.WebhookSignature.generate_signature_header(
                body.decode(), secret, timestamp=at
            )
        }
    if scheme == "standard":
        moment = datetime.fromtimestamp(at, UTC)
        signature = standardwebhooks.Webhook(secret).sign(f"msg_{name}", moment, body.decode())
        return {
            "webhook-id": f"msg_{name}",
            "webhook-timestamp": str(at),
            "webhook-signature": signature,
        }
    if scheme == "paypal":
        return _paypal(secret, body, name, at)
    if scheme == "twilio":
        form = dict(pair.split("=") for pair in body.decode().split("&"))
        return {"x-twilio-signature": RequestValidator(secret).compute_signature(url, form)}
    return _plain(scheme, secret, body, url)


def _plain(scheme: str, secret: str, body: bytes, url: str) -> Mapping[str, str]:
    if scheme == "adyen_platform":
        return {"hmacsignature": generate_payload_sig(body, secret).decode()}
    if scheme == "github":
        made = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return {"x-hub-signature-256": f"sha256={made}"}
    if scheme == "square":
        digest = hmac.new(secret.encode(), url.encode() + body, hashlib.sha256).digest()
        return {"x-square-hmacsha256-signature": base64.b64encode(digest).decode()}
    return {}


@cache
def paypal_key() -> rsa.RSAPrivateKey:
    """The key of the certificate at CERTIFICATE_URL."""
    return rsa.generate_private_key(65537, 2048)


@cache
def authority(name: str) -> tuple[x509.Certificate, rsa.RSAPrivateKey]:
    """A CA: its certificate and its key."""
    key = rsa.generate_private_key(65537, 2048)
    return _certificate(name, key, name, key, days=30, begins=-20, is_ca=True), key


def authority_pem(name: str = CA) -> str:
    """The certificate of a CA, as a connection holds it."""
    return authority(name)[0].public_bytes(Encoding.PEM).decode()


def paypal_certificate(
    *,
    days: int = 30,
    begins: int = -1,
    name: str = "messageverificationcerts.paypal.com",
    issuer: str = CA,
) -> bytes:
    """The certificate at CERTIFICATE_URL, in PEM."""
    _, key = authority(issuer)
    made = _certificate(name, paypal_key(), issuer, key, days=days, begins=begins)
    return made.public_bytes(Encoding.PEM)


def paypal_chain() -> bytes:
    """The same, issued by a CA that another one vouches for, which comes with it."""
    root_key = authority(CA)[1]
    key = authority("In between")[1]
    between = _certificate(
        "In between", key, CA, root_key, days=30, begins=-20, is_ca=True
    ).public_bytes(Encoding.PEM)
    return paypal_certificate(issuer="In between") + between


def self_signed_certificate() -> bytes:
    """What anybody can make of PayPal's name and his own key."""
    name = "messageverificationcerts.paypal.com"
    made = _certificate(name, paypal_key(), name, paypal_key(), days=30, begins=-1)
    return made.public_bytes(Encoding.PEM)


def _certificate(
    name: str,
    key: rsa.RSAPrivateKey,
    issuer: str,
    issuer_key: rsa.RSAPrivateKey,
    *,
    days: int,
    begins: int,
    is_ca: bool = False,
) -> x509.Certificate:
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (name, issuer)]
    begin = datetime.fromtimestamp(now_s(), UTC) + timedelta(days=begins)
    usage = dict.fromkeys(_USAGES, False) | {"key_cert_sign": is_ca, "digital_signature": True}
    return (
        x509.CertificateBuilder()
        .subject_name(names[0])
        .issuer_name(names[1])
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
        .sign(issuer_key, SHA256())
    )


def _paypal(webhook_id: str, body: bytes, name: str, at: int) -> Mapping[str, str]:
    sent = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    message = f"tr-{name}|{sent}|{webhook_id}|{zlib.crc32(body)}".encode()
    signature = paypal_key().sign(message, PKCS1v15(), SHA256())
    return {
        "paypal-transmission-id": f"tr-{name}",
        "paypal-transmission-time": sent,
        "paypal-transmission-sig": base64.b64encode(signature).decode(),
        "paypal-auth-algo": "SHA256withRSA",
        "paypal-cert-url": CERTIFICATE_URL,
    }


def request_of(scheme: str, headers: Mapping[str, str], body: bytes) -> SignedRequest:
    """The request as the receiver hands it to a scheme."""
    key = paypal_key().public_key() if scheme == "paypal" else None
    return SignedRequest(headers, body, URL, key)


def adyen_item(**fields: Any) -> dict[str, Any]:
    """A notification of Adyen, not yet signed."""
    return {
        "pspReference": "P1",
        "merchantAccountCode": "Shop",
        "merchantReference": "14-08-2020-09:53:00",
        "amount": {"currency": "EUR", "value": 1130},
        "eventCode": "AUTHORISATION",
        "success": "true",
        "eventDate": "2026-11-30T02:00:00+01:00",
        "reason": "1234:7777:12/2030",
        **fields,
    }


def adyen_sign(item: dict[str, Any], secret: str) -> dict[str, Any]:
    """The item with its signature inside, as Adyen sends it."""
    signature = generate_notification_sig(item, secret).decode()
    return {**item, "additionalData": {"hmacSignature": signature}}


def adyen_body(items: Sequence[Mapping[str, Any]]) -> bytes:
    """Items as one body."""
    wrapped = [{"NotificationRequestItem": item} for item in items]
    return json.dumps({"live": "false", "notificationItems": wrapped}).encode()


def adyen_signed_part(body: bytes) -> list[Any]:
    """What of an item Adyen signs."""
    item = json.loads(body)
    amount = item["amount"]
    names = (*_PSP, "eventCode", "success")
    return [item.get(name, "") for name in names] + [amount["value"], amount["currency"]]


def adyen_signed_parts(body: bytes) -> list[list[Any]]:
    """The same of every item of a body."""
    items = json.loads(body)["notificationItems"]
    return [
        adyen_signed_part(json.dumps(each["NotificationRequestItem"]).encode()) for each in items
    ]
