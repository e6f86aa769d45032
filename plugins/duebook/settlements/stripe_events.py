"""What an event of Stripe is about, and the money rows of that, asked for by id.

An event says that something happened to a payment or a payout; what it says beyond the id is old by
the time it is read, and is not looked at. Sources: https://docs.stripe.com/api/events/types,
https://docs.stripe.com/event-destinations#thin-events.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from duebook.errors import InputError
from duebook.settlements.base import NothingToRead
from duebook.settlements.stripe_api import (
    CHARGE_PREFIXES,
    REFUND_PREFIXES,
    Json,
    StripeReader,
    id_of,
)

PAYMENT_INTENT_PREFIXES: Final = ("pi_",)
DISPUTE_PREFIXES: Final = ("dp_", "du_", "pdp_")
PAYOUT_PREFIXES: Final = ("po_",)
READABLE: Final = (
    *CHARGE_PREFIXES,
    *REFUND_PREFIXES,
    *DISPUTE_PREFIXES,
    *PAYMENT_INTENT_PREFIXES,
    *PAYOUT_PREFIXES,
)

_FAMILIES: Final = ("charge.", "payment_intent.", "refund.", "payout.")
_TYPE: Final = re.compile(r"[a-z0-9_.]{1,100}", re.ASCII)
_ID: Final = re.compile(r"[A-Za-z0-9_]{4,255}", re.ASCII)


def subject_of(event: Json) -> str:
    """The id of the charge, payment intent, refund, dispute or payout that an event is about.

    Both forms are read: snapshot events, which hold the thing, and thin ones, which name it. Raises
    NothingToRead for any other event.
    """
    kind = event.get("type")
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        raise NothingToRead("the event has no type")
    if not kind.removeprefix("v1.").startswith(_FAMILIES):
        raise NothingToRead(f"{kind} is about no payment, refund, dispute or payout")
    if event.get("object") == "v2.core.event":
        subject = id_of(event.get("related_object"))
    else:
        data = event.get("data")
        subject = id_of(data.get("object")) if isinstance(data, dict) else ""
    if not is_readable(subject):
        raise NothingToRead(f"{kind} names nothing that can be read by its id")
    return subject


def is_readable(subject: str) -> bool:
    """Whether money rows can be asked for by this id."""
    return subject.startswith(READABLE) and _ID.fullmatch(subject) is not None


def charges_and_payouts(
    reader: StripeReader, subjects: Iterable[str]
) -> tuple[list[str], list[Json]]:
    """The charges that these are, belong to or consist of, and the payouts; each once.

    Raises InputError for an id that Stripe does not know, and what asking raises.
    """
    charges: dict[str, None] = {}
    payouts: dict[str, Json] = {}
    for subject in subjects:
        if subject.startswith(PAYMENT_INTENT_PREFIXES):
            found = reader.rows("charges", None, payment_intent=subject)
            charges.update(dict.fromkeys(id_of(charge) for charge in found))
        elif subject.startswith(PAYOUT_PREFIXES):
            payouts[subject] = _known(reader, "payouts", subject)
        elif subject.startswith(CHARGE_PREFIXES):
            _known(reader, "charges", subject)
            charges[subject] = None
        else:
            kind = "refunds" if subject.startswith(REFUND_PREFIXES) else "disputes"
            charges[id_of(_known(reader, kind, subject).get("charge"))] = None
    return [charge for charge in charges if charge], list(payouts.values())


def rows_about(reader: StripeReader, charge: str) -> Iterator[Json]:
    """Every balance transaction of a charge, its refunds and its disputes."""
    yield from reader.rows("balance_transactions", None, source=charge)
    for kind in ("refunds", "disputes"):
        for link in reader.rows(kind, None, charge=charge):
            yield from reader.rows("balance_transactions", None, source=id_of(link))


def _known(reader: StripeReader, kind: str, object_id: str) -> Json:
    found = reader.one(kind, object_id)
    if found is None:
        raise InputError(f"Stripe does not know {object_id}")
    return found
