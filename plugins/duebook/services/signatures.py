"""Who signed a webhook: the providers' own libraries over raw bytes, hedged where they are lax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from duebook.services.signing.adyen import AdyenPlatformScheme, AdyenScheme
from duebook.services.signing.base import Event, Scheme, SignatureRefused, SignedRequest
from duebook.services.signing.paypal import PayPalScheme
from duebook.services.signing.plain import GithubScheme, SquareScheme, TwilioScheme
from duebook.services.signing.standard import StandardScheme
from duebook.services.signing.stripe import StripeScheme

SchemeName = Literal[
    "stripe", "standard", "adyen", "adyen_platform", "paypal", "square", "github", "twilio"
]

SCHEMES: Final[Mapping[SchemeName, Scheme]] = MappingProxyType(
    {
        "stripe": StripeScheme(),
        "standard": StandardScheme(),
        "adyen": AdyenScheme(),
        "adyen_platform": AdyenPlatformScheme(),
        "paypal": PayPalScheme(),
        "square": SquareScheme(),
        "github": GithubScheme(),
        "twilio": TwilioScheme(),
    }
)


def require_secret(scheme: SchemeName, secret: str) -> None:
    """Raise ValueError for a secret that the scheme can't use; its text does not repeat it."""
    SCHEMES[scheme].require_secret(secret)


def verify(
    scheme: SchemeName, secrets: Sequence[str], request: SignedRequest, now_s: float
) -> Sequence[Event]:
    """The events of a request, once any of the secrets is shown to have signed these very bytes.

    `now_s` is epoch seconds. Raises SignatureRefused, whatever a library raises, and BodyRefused.
    """
    signed = SCHEMES[scheme]
    if any(name not in request.headers for name in signed.headers):
        raise SignatureRefused("a signature header is missing, or came twice")
    return signed.verify(secrets, request, now_s)
