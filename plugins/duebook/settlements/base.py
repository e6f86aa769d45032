"""What a settlement source hands to the reconciliation: typed rows, rejects and a cursor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, Protocol, runtime_checkable

EntryType = Literal[
    "charge",
    "refund",
    "chargeback",
    "chargeback_reversal",
    "fee",
    "payout",
    "transfer",
    "reserve",
    "conversion",
    "adjustment",
    "other",
]
EntryStatus = Literal["pending", "settled"]


@dataclass(frozen=True, slots=True)
class SettlementEntry:
    """One money row of a provider; amounts are signed integers in minor units.

    `fee_minor` is positive when it is a cost and stands in `net_currency`; `currency` is the gross
    currency. `source_order` orders what one source says about one entry: later wins. A `batch_ref`
    of None means that this page did not say: it never replaces one that is known.
    """

    line_no: int
    entry_id: str
    entry_type: EntryType
    provider_type: str
    batch_ref: str | None
    payment_ref: str | None
    provider_payment_ref: str | None
    gross_minor: int
    fee_minor: int
    net_minor: int
    currency: str
    net_currency: str
    entry_status: EntryStatus
    occurred_at: datetime
    available_at: datetime | None
    source_order: int
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """One row that could not be read; it is kept in quarantine while the others go on."""

    position: int
    column: str | None
    value: str | None
    reason: str
    expected: str


@dataclass(frozen=True, slots=True)
class FileCheck:
    """What a file states about its own rows, major units, beside what they come to.

    `section` names the part of the file. Neither amount is there when what should state them is
    missing or can't be read.
    """

    section: str
    currency: str | None
    check: str
    stated: Decimal | None
    computed: Decimal | None

    @property
    def is_ok(self) -> bool:
        """Whether it is stated, and the rows come to it."""
        return self.stated is not None and self.stated == self.computed


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far an API was read: everything created at or before `position` was seen once."""

    position: datetime


@dataclass(frozen=True, slots=True)
class BatchFact:
    """What a provider says about one batch or payout itself.

    `is_itemisable` is False for a payout whose rows the provider does not name (a manual one);
    `is_complete` says that every row of it was named in this pull. `provider_status` is the
    provider's word for how the payout stands.
    """

    batch_ref: str
    currency: str
    is_itemisable: bool
    is_complete: bool
    provider_status: str
    expected_at: datetime | None


class Pull(Protocol):
    """One read of a provider; all but `entries` is complete once `entries` is exhausted."""

    @property
    def entries(self) -> Iterator[SettlementEntry]: ...

    @property
    def rejects(self) -> Sequence[RejectedRow]: ...

    @property
    def batches(self) -> Sequence[BatchFact]: ...

    @property
    def cursor(self) -> Cursor: ...


class ApiSource(Protocol):
    """A provider read over its API."""

    def pull(
        self,
        *,
        cursor: Cursor | None,
        pending_ids: Sequence[str],
        open_batches: Sequence[str],
        look_back: timedelta,
        now: datetime,
    ) -> Pull:
        """Read newest to oldest down to the cursor minus the look-back, then each pending id.

        `now` is the database's clock, read before the first request. `open_batches` are payouts
        whose rows are not complete yet. Raises UnavailableError when the provider is away.
        """
        ...


@runtime_checkable
class SubjectSource(Protocol):
    """A provider that can be asked about single payments and payouts by their ids."""

    def pull_subjects(self, *, subjects: Sequence[str], now: datetime) -> Pull:
        """Read every money row of these, as the provider has them now.

        The pull's cursor says nothing. Raises InputError for an id that is not known, and what
        `ApiSource.pull` raises.
        """
        ...


class NothingToRead(Exception):
    """An event that is about no money row; its text says why, and quotes no body."""
