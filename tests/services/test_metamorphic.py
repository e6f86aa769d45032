"""The same money told in another way is the same money, whatever the provider's format.

Rows shuffled, a file split, delivered twice, days reversed, a byte order mark, other line ends,
columns in another order: totals and statuses are equal. Intents are equal when one run reads the
set, and across runs none is repeated.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.settlement_files import World, booked, plain
from tests.settlement_forms import FORMS, MAPPED, PAYMENTS, Form, Money, draw

SEEDS = (1, pytest.param(2, marks=pytest.mark.prove))


# ---- the ways to tell the same ------------------------------------------------------------------

Days = dict[int, list[Money]]
Told = list[list[str]]
"""Runs, each of the texts that it reads."""


def tell(form: Form, days: Days) -> list[str]:
    return [form.text(form.table(rows, day)) for day, rows in sorted(days.items())]


def shuffled(form: Form, days: Days, dice: random.Random) -> Told:
    return [tell(form, {day: dice.sample(rows, len(rows)) for day, rows in days.items()})]


def split(form: Form, days: Days, dice: random.Random) -> Told:
    del dice
    halves = [
        form.text(form.table(part, day))
        for day, rows in sorted(days.items())
        for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :])
        if part
    ]
    return [halves]


def delivered_twice(form: Form, days: Days, dice: random.Random) -> Told:
    del dice
    texts = tell(form, days)
    # The second time with one more line end: other bytes, the same rows.
    return [texts, texts, [f"{text}\n" for text in texts]]


def a_run_a_day(form: Form, days: Days, dice: random.Random) -> Told:
    del dice
    return [[text] for text in tell(form, days)]


def days_reversed(form: Form, days: Days, dice: random.Random) -> Told:
    del dice
    return [[text] for text in reversed(tell(form, days))]


def with_a_byte_order_mark(form: Form, days: Days, dice: random.Random) -> Told:
    del dice
    return [[f"\ufeff{text}" for text in tell(form, days)]]


def with_other_line_ends(form: Form, days: Days, dice: random.Random) -> Told:
    del dice
    return [[text.replace("\n", "\r\n") for text in tell(form, days)]]


def columns_reordered(form: Form, days: Days, dice: random.Random) -> Told:
    texts = []
    for day, rows in sorted(days.items()):
        header, cells = form.table(rows, day)
        free = list(range(form.fixed, len(header)))
        order = [*range(form.fixed), *dice.sample(free, len(free))]
        table = [header[at] for at in order], [[row[at] for at in order] for row in cells]
        texts.append(form.text(table))
    return [texts]


IN_ONE_RUN = (
    shuffled,
    split,
    with_a_byte_order_mark,
    with_other_line_ends,
    columns_reordered,
)
ACROSS_RUNS = (delivered_twice, a_run_a_day, days_reversed)


@pytest.fixture
def ready(world: World) -> World:
    """Live, with the payments booked for whichever account tells of them."""
    others = {
        name: {"provider": name, "mode": "dry_run", "settle_within": "P3D", "zone": "UTC"}
        for name in ("gocardless", "square", "braintree")
    }
    world.configure(provider_accounts={"mapped": MAPPED, **others})
    accounts = sorted({form.account for form in FORMS.values()})
    world.configure(
        provider_accounts={
            name: {
                **plain(world.config.provider_accounts[name]),
                "mode": "live",
                "notify_from": "2020-01-01T00:00:00Z",
            }
            for name in accounts
        }
    )
    return world


def by_day(rows: Sequence[Money]) -> Days:
    days: Days = {}
    for row in rows:
        days.setdefault(row.day, []).append(row)
    return days


def state(world: World, form: Form, rows: Sequence[Money], told: Told) -> dict[str, Any]:
    """Books and proposals after these runs."""
    charged = {row.number: row.cents for row in rows if row.kind == "charge"}
    world.book(
        *(booked(number, cents, provider_account=form.account) for number, cents in charged.items())
    )
    number = 0
    for texts in told:
        files: list[Path] = []
        for text in texts:
            number += 1
            files.append(world.text(text, f"file{number}.txt"))
        report = world.reconcile(*files, account=form.account)
        assert report.quarantined == 0
        assert not report.file_checks
    return {
        "positions": world.rows(
            "select payment_id, currency, captured_minor, refunded_minor, fee_minor, net_minor,"
            " entry_count from duebook.settled_position order by 1, 2"
        ),
        "statuses": world.rows(
            "select payment_id, settled_status from duebook_reports.ledger_vs_provider order by 1"
        ),
        "totals": world.rows(
            "select entry_type, sum(gross_minor), sum(fee_minor), sum(net_minor), count(*)"
            " from duebook.settlement_entry where entry_type <> 'payout' group by 1 order by 1"
        ),
        "differences": world.rows(
            "select kind, subject, provider_minor, ledger_minor from duebook.discrepancy"
            " where closed_at is null and kind <> 'unexplained_remainder' order by 1, 2"
        ),
        "intents": world.rows("select operation_key from duebook.intent order by 1"),
        "changes": world.value(
            "select count(*) from duebook.ledger_change where change_kind = 'balance'"
        ),
    }


_TOLD_PLAINLY: dict[tuple[str, int], dict[str, Any]] = {}


@pytest.fixture
def plainly(ready: World, make_database: Callable[[], str]) -> Callable[[Form, int], Any]:
    """What it comes to when it is told day by day in one run; a database is made for it once."""

    def told(form: Form, seed: int) -> dict[str, Any]:
        [name] = [name for name, each in FORMS.items() if each is form]
        if (name, seed) not in _TOLD_PLAINLY:
            other = dataclasses.replace(ready, url=make_database(), _files=0)
            other.configure()
            rows = draw(seed)
            found = state(other, form, rows, [tell(form, by_day(rows))])
            assert len(found["positions"]) == PAYMENTS
            _TOLD_PLAINLY[name, seed] = found
        return _TOLD_PLAINLY[name, seed]

    return told


def comparable(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("positions", "statuses", "totals", "differences")}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", IN_ONE_RUN, ids=lambda way: way.__name__)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_told_otherwise_in_one_run_it_is_the_same_with_the_same_intents(
    ready: World, plainly: Callable[[Form, int], Any], form: Form, way: Any, seed: int
) -> None:
    rows = draw(seed)
    otherwise = state(ready, form, rows, way(form, by_day(rows), random.Random(seed)))
    assert otherwise == plainly(form, seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", ACROSS_RUNS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_told_in_several_runs_it_comes_to_the_same_and_nothing_is_promised_twice(
    ready: World, plainly: Callable[[Form, int], Any], form: Form, way: Any, seed: int
) -> None:
    rows = draw(seed)
    otherwise = state(ready, form, rows, way(form, by_day(rows), random.Random(seed)))
    assert comparable(otherwise) == comparable(plainly(form, seed))
    keys = [row["operation_key"] for row in otherwise["intents"]]
    assert len(keys) == len(set(keys))
    # A change of a balance touches what was captured, what was refunded, or both.
    assert otherwise["changes"] <= len(keys) <= 2 * otherwise["changes"]
    if way is delivered_twice:
        assert otherwise == plainly(form, seed)
