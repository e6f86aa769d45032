"""The demo's payments: made at the providers through their own interfaces, and written as books."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from duebook.demo.servers import STRIPE_KEY, Servers
from duebook.settlements.generator import (
    Breaks,
    StripeFill,
    StripePlan,
    fill_stripe,
    generate_adyen_settlement,
    generate_stripe_plan,
    write_contacts,
    write_stripe_ledger,
)
from duebook.settlements.stripe_api import make_stripe_client

SEED = 20261130
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class Books:
    """The files to import, and the payment whose refund is followed by another."""

    ledgers: tuple[Path, ...]
    contacts: tuple[Path, ...]
    inbox: Path
    twice_refunded: str
    twice_refunded_charge: str
    second_refund_minor: int


def write_books(home: Path, servers: Servers, now: datetime, progress: Progress) -> Books:
    """Fill both Stripes through the real library, write an Adyen report, and the books of all.

    Five days lie between the payments and `now`, so that the provider has settled them.
    """
    folder, inbox = home / "books", home / "inbox"
    folder.mkdir(parents=True)
    inbox.mkdir()
    happened = now - timedelta(days=5)
    plan = generate_stripe_plan(SEED, charges=300, disputes=1)
    fill = _fill("stripe", servers.stripe, plan, progress)
    servers.set_stripe_clock(None)
    local_plan = generate_stripe_plan(
        SEED + 1, charges=60, disputes=0, payouts=1, account_prefix="local-account", accounts=20
    )
    local_fill = _fill("localstripe", servers.localstripe, local_plan, progress)
    ledgers = []
    for name, one_plan, one_fill, breaks in (
        ("stripe", plan, fill, Breaks(missing_in_ledger=2, amount_mismatch=1, pending=3)),
        ("localstripe", local_plan, local_fill, Breaks()),
    ):
        path = folder / f"ledger_{name}.csv"
        write_stripe_ledger(
            path,
            one_plan,
            one_fill,
            expected_at=happened,
            provider_account=name,
            breaks=breaks,
        )
        write_contacts(folder / f"contacts_{name}.csv", one_plan.accounts, one_plan.account_prefix)
        ledgers.append(path)
    adyen = generate_adyen_settlement(
        SEED,
        120,
        1128,
        folder,
        day=happened.astimezone(ZoneInfo("Europe/Amsterdam")).date(),
        breaks=Breaks(
            missing_in_ledger=1,
            amount_mismatch=1,
            status_mismatch=1,
            duplicate_reference=1,
            missing_at_provider=2,
        ),
    )
    adyen.path.rename(inbox / adyen.path.name)
    refund = next(
        planned
        for planned in plan.refunds
        if planned.amount_minor < _charged(plan, planned.payment_id)
    )
    return Books(
        ledgers=(*ledgers, adyen.ledger_path),
        contacts=tuple(sorted(folder.glob("contacts_*.csv"))),
        inbox=inbox,
        twice_refunded=refund.payment_id,
        twice_refunded_charge=fill.charge_ids[refund.payment_id],
        second_refund_minor=_charged(plan, refund.payment_id) - refund.amount_minor,
    )


def refund_once_more(books: Books, servers: Servers) -> None:
    """Refund the rest of the payment that was refunded in part."""
    client = make_stripe_client(STRIPE_KEY, base_address=servers.stripe)
    client.v1.refunds.create(
        {"charge": books.twice_refunded_charge, "amount": books.second_refund_minor}
    )


def _fill(name: str, address: str, plan: StripePlan, progress: Progress) -> StripeFill:
    client = make_stripe_client(STRIPE_KEY, base_address=address)
    return fill_stripe(
        client,
        plan,
        progress=lambda done, of: progress(f"filling {name}", done, of),
    )


def _charged(plan: StripePlan, payment_id: str) -> int:
    return next(charge.amount_minor for charge in plan.charges if charge.payment_id == payment_id)
