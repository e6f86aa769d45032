"""A stand-in for Stripe's API: loopback, free port, a clock that can be set.

It does what `localstripe` does not: the documented filters and paging of balance transactions,
fees, pending to available, automatic payouts with their items, disputes, and failures on demand.

    with StripeStub(now=datetime(2026, 3, 1, tzinfo=UTC)) as stub:     # in a thread of this process
        client = make_stripe_client("sk_test_stub", base_address=stub.address)

    python -m tests.stripe_stub --port 8421 --now 2026-03-01T00:00:00Z  # as a process

Sources: https://docs.stripe.com/api, https://docs.stripe.com/testing,
https://docs.stripe.com/payouts/reconciliation, https://docs.stripe.com/reports/reporting-categories.
"""

from __future__ import annotations

from tests.stripe_stub.books import Books, StripeRefusal
from tests.stripe_stub.server import Failure, StripeStub

__all__ = ["Books", "Failure", "StripeRefusal", "StripeStub"]
