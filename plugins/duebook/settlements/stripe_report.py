"""Stripe's itemised reports as CSV: payout reconciliation, balance and activity.

One row a balance transaction, amounts in major units, times in the account's zone unless their
column says UTC. Source: https://docs.stripe.com/reports/payout-reconciliation and
https://docs.stripe.com/reports/report-types.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from duebook.config import CsvColumns
from duebook.settlements.stripe import BY_CATEGORY as TYPES

__all__ = ["OPTIONAL", "TYPES", "WHAT", "variants"]

WHAT: Final = "the columns of Stripe's itemised reports"
OPTIONAL: Final = frozenset({"payment_ref", "provider_payment_ref", "batch_ref"})
"""Fields whose columns a report may leave out: which ones it has is chosen where it is made."""


def variants(reference: str, zone: str) -> Iterator[tuple[str, CsvColumns, str]]:
    """The name, columns and zone of each form; `reference` says what a payment is known by."""
    kind, _, key = reference.partition(".")
    column = f"payment_metadata[{key}]" if kind == "metadata" else f"{kind}_id"
    for created, of_zone in (("created_utc", "UTC"), ("created", zone)):
        yield (
            f"Stripe itemised report ({created})",
            CsvColumns(
                entry_id="balance_transaction_id",
                type="reporting_category",
                gross="gross",
                fee="fee",
                net="net",
                currency="currency",
                payment_ref=column,
                provider_payment_ref="charge_id",
                batch_ref="automatic_payout_id",
                occurred_at=created,
            ),
            of_zone,
        )
