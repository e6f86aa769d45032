"""Asking Stripe's API: the real library's client, pages and single objects, with patience.

Sources: https://docs.stripe.com/api/pagination, https://docs.stripe.com/rate-limits,
https://docs.stripe.com/error-low-level.
"""

from __future__ import annotations

import json
import logging
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final, Protocol

import stripe

from duebook.errors import ConfigurationError, InputError, UnavailableError

PAGE_LIMIT: Final = 100
"""Most rows that Stripe gives in one page."""

CHARGE_PREFIXES: Final = ("ch_", "py_")
REFUND_PREFIXES: Final = ("re_", "pyr_")
LINK_PREFIXES: Final = (*REFUND_PREFIXES, "dp_", "du_", "pdp_")
"""Ids of what belongs to a charge: refunds and disputes."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one request may be tried again, above the retries of the library.

    `tries` counts answers of 429 and responses that broke off; `longest_wait` is the longest pause
    that is taken before giving up instead: a provider that asks for more gets the next run.
    """

    tries: int = 6
    first_wait: timedelta = timedelta(seconds=1)
    longest_wait: timedelta = timedelta(seconds=60)


def make_stripe_client(
    api_key: str,
    *,
    base_address: str | None = None,
    stripe_account: str | None = None,
    network_retries: int = 2,
    timeout: timedelta = timedelta(seconds=30),
) -> stripe.StripeClient:
    """Make a client of the real library; `base_address` points it at another server.

    The library logs bodies at DEBUG, which hold amounts and addresses, so its logger is kept above.
    Raises ConfigurationError when the key is missing.
    """
    if not api_key:
        raise ConfigurationError("the Stripe API key is missing: set STRIPE_API_KEY")
    logger = logging.getLogger("stripe")
    if logger.level < logging.WARNING:
        logger.setLevel(logging.WARNING)
    return stripe.StripeClient(
        api_key,
        stripe_account=stripe_account,
        base_addresses={"api": base_address.rstrip("/")} if base_address else None,
        max_network_retries=network_retries,
        http_client=stripe.RequestsClient(timeout=timeout.total_seconds()),
    )


@dataclass(frozen=True, slots=True)
class Payment:
    """What a charge is known by; no personal data."""

    charge: str
    payment_intent: str | None
    metadata: Mapping[str, str]


class _Service(Protocol):
    """What the library's services for balance transactions, payouts … share."""

    def list(self, params: Any = None, options: Any = None) -> Any: ...

    def retrieve(self, object_id: str, /, params: Any = None, options: Any = None) -> Any: ...


class _Refused(Exception):
    """An answer of 400 or 404 that the asker may know what to do with."""

    def __init__(self, status: int, about: str, line: str) -> None:
        super().__init__(line)
        self.status = status
        self.about = about


class StripeReader:
    """Pages and single objects as plain JSON, asked for with patience.

    Bodies are parsed again from the text that came: a number with a fraction stays text, so no
    float arises, and an object that Stripe adds tomorrow needs no class.
    """

    def __init__(
        self,
        client: stripe.StripeClient,
        patience: Patience,
        sleep: Callable[[float], None],
        *,
        wants_metadata: bool,
    ) -> None:
        v1 = client.v1
        self._services: Mapping[str, _Service] = {
            "balance_transactions": v1.balance_transactions,
            "payouts": v1.payouts,
            "refunds": v1.refunds,
            "disputes": v1.disputes,
            "charges": v1.charges,
        }
        self._patience = patience
        self._sleep = sleep
        self._wants_metadata = wants_metadata
        self.filters_created = True
        self._payment_by_id = lru_cache(maxsize=10_000)(self._look_up_payment)
        self.requests = 0
        """Pages and single objects asked for, tries included."""

    def rows(self, kind: str, since: int | None, **filters: str) -> Iterator[Json]:
        """All rows of a list that were created at `since` (epoch seconds, inclusive) or later.

        A server without the `created` filter (a stand-in for Stripe) is read whole instead.
        """
        if since is not None and self.filters_created:
            params = {**filters, "created": {"gte": since}}
            try:
                first = self._page(kind, params)
            except _Refused as refused:
                if refused.status != 400 or refused.about != "created":
                    raise InputError(str(refused)) from None
                self.filters_created = False
            else:
                for page in self._pages(kind, params, first):
                    yield from page
                return
        for page in self._pages(kind, filters, self._page_or_error(kind, filters)):
            yield from (row for row in page if since is None or _is_since(row, since))

    def pages_before(self, until: int) -> Iterator[list[Json]]:
        """Pages of balance transactions created before `until`, newest first."""
        kind, params = "balance_transactions", {"created": {"lt": until}}
        if self.filters_created:
            yield from self._pages(kind, params, self._page_or_error(kind, params))

    def one(self, kind: str, object_id: str) -> Json | None:
        """One object by its id; None when Stripe does not know it."""
        params = {"expand": ["source"]} if kind == "balance_transactions" else {}
        service = self._services[kind]
        try:
            return self._ask(kind, lambda: service.retrieve(object_id, params))
        except _Refused as refused:
            if refused.status == 404:
                return None
            raise InputError(str(refused)) from None

    def payment_of(self, row: Json) -> Payment | None:
        """The payment that a row's source is, or refunds, or disputes."""
        source, source_id = row.get("source"), source_id_of(row)
        if not source_id.startswith(CHARGE_PREFIXES + LINK_PREFIXES):
            return None
        if not isinstance(source, dict):
            return self._payment_by_id(source_id)
        if source_id.startswith(CHARGE_PREFIXES):
            return _payment(source)
        return self._payment_of_link(source)

    def _payment_of_link(self, link: Json) -> Payment | None:
        """A refund or dispute names its charge; only the charge's metadata needs a request."""
        charge, charge_id = link.get("charge"), id_of(link.get("charge"))
        if not charge_id:
            return None
        if isinstance(charge, dict):
            return _payment(charge)
        if self._wants_metadata:
            return self._payment_by_id(charge_id)
        return Payment(charge_id, id_of(link.get("payment_intent")) or None, {})

    def _look_up_payment(self, source_id: str) -> Payment | None:
        if source_id.startswith(CHARGE_PREFIXES):
            charge = self.one("charges", source_id)
            return _payment(charge) if charge else Payment(source_id, None, {})
        kind = "refunds" if source_id.startswith(REFUND_PREFIXES) else "disputes"
        link = self.one(kind, source_id)
        return self._payment_of_link(link) if link else None

    def _page(self, kind: str, params: Mapping[str, Any], after: str | None = None) -> Json:
        asked: Json = {**params, "limit": PAGE_LIMIT}
        if kind == "balance_transactions":
            asked["expand"] = ["data.source"]
        if after is not None:
            asked["starting_after"] = after
        service = self._services[kind]
        page = self._ask(kind, lambda: service.list(asked))
        if not isinstance(page.get("data"), list):
            raise InputError(
                f"what answers for Stripe gave no list of {kind}: is the address right?"
            )
        return page

    def _page_or_error(
        self, kind: str, params: Mapping[str, Any], after: str | None = None
    ) -> Json:
        try:
            return self._page(kind, params, after)
        except _Refused as refused:
            raise InputError(str(refused)) from None

    def _pages(self, kind: str, params: Mapping[str, Any], page: Json) -> Iterator[list[Json]]:
        after: str | None = None
        while True:
            rows = [row if isinstance(row, dict) else {} for row in page["data"]]
            yield rows
            if page.get("has_more") is not True:
                return
            last = next((row["id"] for row in reversed(rows) if _is_id(row.get("id"))), None)
            if last is None or last == after:
                raise UnavailableError(
                    f"Stripe announced more {kind} and did not give them; the next run picks up"
                )
            after = last
            page = self._page_or_error(kind, params, after)

    def _ask(self, kind: str, request: Callable[[], Any]) -> Json:
        """Ask until answered; raises _Refused for 400 and 404, else the errors of `pull`."""
        for attempt in range(self._patience.tries):
            self.requests += 1
            try:
                return _exact(request())
            except stripe.StripeError as error:
                failure = error
            # Not inside the except block: the library's message may hold the key's end or a body,
            # and the error raised here would carry it along as its context.
            self._sleep(self._wait_after(failure, kind, attempt))
        raise UnavailableError(f"Stripe did not give {kind} after {self._patience.tries} tries")

    def _wait_after(self, error: stripe.StripeError, kind: str, attempt: int) -> float:
        """Seconds to wait before the next try, or the error that ends the pull."""
        status = error.http_status
        request_id = f", request {error.request_id}" if error.request_id else ""
        if status in (401, 403):
            what = "the API key" if status == 401 else "the API key the right to read"
            raise ConfigurationError(
                f"Stripe refuses {what} for {kind} (HTTP {status}{request_id})"
            )
        if status in (400, 404):
            line = f"Stripe refuses to give {kind} (HTTP {status}{request_id})"
            raise _Refused(status, _parameter(error), line)
        if status == 429:
            reason = "is too busy for us (HTTP 429)"
        elif status is not None and 200 <= status < 300:
            reason = "sent an answer that is no JSON"
        elif _broke_off(error):
            reason = "broke off in mid-answer"
        else:
            # The library has tried these again already.
            reason = "could not be reached" if status is None else f"failed (HTTP {status})"
            raise UnavailableError(_away(reason, kind, request_id))
        wait = self._backoff(error, attempt)
        if attempt + 1 == self._patience.tries or wait > self._patience.longest_wait:
            if wait > self._patience.longest_wait:
                reason += f" and asks for {wait.total_seconds():.0f} s"
            raise UnavailableError(_away(reason, kind, request_id))
        return wait.total_seconds()

    def _backoff(self, error: stripe.StripeError, attempt: int) -> timedelta:
        jitter = random.uniform(1, 1.25)
        wait: timedelta = self._patience.first_wait * 2**attempt * jitter
        return max(min(wait, self._patience.longest_wait), _retry_after(error))


def id_of(thing: object) -> str:
    """The id of an expandable field: itself, or inside the object that it was expanded to."""
    if isinstance(thing, dict):
        thing = thing.get("id")
    return thing if isinstance(thing, str) else ""


def source_id_of(row: Json) -> str:
    """The id of what a balance transaction is about; empty when it has no source."""
    return id_of(row.get("source"))


def _exact(answer: Any) -> Json:
    """The body of an answer, its fractions as text."""
    body = json.loads(answer.last_response.body, parse_float=str, parse_constant=str)
    return body if isinstance(body, dict) else {}


def _payment(charge: Json) -> Payment:
    metadata = charge.get("metadata")
    texts = metadata.items() if isinstance(metadata, dict) else ()
    return Payment(
        charge=id_of(charge),
        payment_intent=id_of(charge.get("payment_intent")) or None,
        metadata={name: text for name, text in texts if isinstance(text, str)},
    )


def _is_id(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_since(row: Json, since: int) -> bool:
    created = row.get("created")
    return type(created) is not int or created >= since


def _parameter(error: stripe.StripeError) -> str:
    """The parameter that a refusal is about; not every server names it in its field."""
    if isinstance(error, stripe.InvalidRequestError) and error.param:
        return str(error.param).partition("[")[0]
    return "created" if "created" in (error.user_message or "") else ""


def _broke_off(error: stripe.StripeError) -> bool:
    """Did the connection end inside the body? The library does not try these again."""
    cause = type(error.__cause__).__name__
    return isinstance(error, stripe.APIConnectionError) and cause in (
        "ChunkedEncodingError",
        "ContentDecodingError",
    )


def _retry_after(error: stripe.StripeError) -> timedelta:
    """Retry-After in both of its forms: seconds, or an HTTP date (told from the answer's own)."""
    headers = {name.lower(): text.strip() for name, text in (error.headers or {}).items()}
    value = headers.get("retry-after", "")
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
        whole, _, fraction = value.partition(".")
        return timedelta(seconds=int(whole), microseconds=int(fraction.ljust(6, "0")[:6]))
    try:
        wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return timedelta(0)
    return max(wait, timedelta(0))


def _away(reason: str, kind: str, request_id: str) -> str:
    return f"Stripe {reason} while giving {kind}{request_id}; the next run picks up"
