"""Runs beside each other, runs that die, and the same evidence in other shapes."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duebook.db.connect import Limits, connect_url
from duebook.errors import UnavailableError
from duebook.services.reconcile import ReconcileRequest, reconcile
from tests.settlement_files import (
    ADYEN_HEADER,
    World,
    adyen_row,
    booked,
    make_world,
    settled,
    write_rows,
)

DEADLINE = 60.0


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until it holds, with a deadline."""
    until = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < until, "the condition did not come true in time"
        time.sleep(0.02)


def two_accounts(world: World) -> None:
    """adyen and adyen2, both live."""
    document = world.config.provider_accounts["adyen"].model_dump()
    live = {**document, "mode": "live", "notify_from": "2020-01-01T00:00:00Z"}
    world.configure(provider_accounts={"adyen": live, "adyen2": live})


def test_two_accounts_paying_half_each_make_two_changes_in_four_nights(world: World) -> None:
    two_accounts(world)
    world.book(booked(1, 1000, provider_account=""))
    first = world.adyen(settled(1, "5.00"))
    second = world.adyen(settled(1, "5.00", note="other"))
    counts = []
    for _ in range(4):
        for account, file in (("adyen", first), ("adyen2", second)):
            counts.append(world.reconcile(file, account=account).ledger_changes)
    assert counts == [1, 1, 0, 0, 0, 0, 0, 0]
    changes = world.rows(
        "select before_status, after_status from duebook.ledger_change order by change_id"
    )
    assert [tuple(row.values()) for row in changes] == [
        ("expected", "partially_settled"),
        ("partially_settled", "settled"),
    ]


def test_both_runs_committing_at_once_end_settled(world: World) -> None:
    two_accounts(world)
    world.book(booked(1, 1000, provider_account=""))
    files = {
        "adyen": world.adyen(settled(1, "5.00")),
        "adyen2": world.adyen(settled(1, "5.00", note="other")),
    }
    reports: dict[str, int] = {}

    def run(account: str) -> None:
        reports[account] = world.reconcile(files[account], account=account).ledger_changes

    with world.connect() as gate:
        gate.autocommit = False
        gate.execute("select from duebook.ledger_payment for update")
        threads = [threading.Thread(target=run, args=[account]) for account in files]
        for thread in threads:
            thread.start()
        # Both have written their entries and wait for the payment: let them go at once.
        wait_for(
            lambda: (
                world.value(
                    "select count(*) from pg_stat_activity where datname = current_database()"
                    " and wait_event_type = 'Lock'"
                )
                == 2
            )
        )
        gate.rollback()
        for thread in threads:
            thread.join(DEADLINE)
    assert reports == {"adyen": 1, "adyen2": 1}
    changes = world.rows(
        "select before_status, after_status from duebook.ledger_change order by change_id"
    )
    assert [tuple(row.values()) for row in changes] == [
        ("expected", "partially_settled"),
        ("partially_settled", "settled"),
    ]
    assert world.value("select count(*) from duebook.intent") == 2


def test_an_account_that_stays_held_is_said_in_one_line(world: World) -> None:
    world.reconcile()

    def impatient() -> psycopg.Connection[Any]:
        return connect_url(world.url, autocommit=True, limits=Limits(lock=1))

    with world.connect() as gate:
        gate.autocommit = False
        gate.execute("select from duebook.provider_account for update")
        with pytest.raises(
            UnavailableError, match="another run or import holds what a run of adyen"
        ):
            reconcile(impatient, ReconcileRequest("adyen"), world.config, world.source)
        gate.rollback()
    assert world.value("select count(*) from duebook.reconciliation_run") == 1


def test_one_file_given_to_two_runs_at_once_is_taken_once(world: World) -> None:
    world.book(booked(1, 1000))
    file = world.adyen(settled(1, "10.00"))
    world.reconcile()
    reports: list[Any] = []
    with world.connect() as gate:
        gate.autocommit = False
        gate.execute(
            "select from duebook.provider_account where provider_account = 'adyen' for update"
        )
        threads = [
            threading.Thread(target=lambda: reports.append(world.reconcile(file))) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        wait_for(
            lambda: (
                world.value(
                    "select count(*) from pg_stat_activity where datname = current_database()"
                    " and wait_event_type = 'Lock'"
                )
                == 2
            )
        )
        gate.rollback()
        for thread in threads:
            thread.join(DEADLINE)
    assert sorted((r.entries_new, r.entries_unchanged) for r in reports) == [(0, 1), (1, 0)]
    assert world.value("select count(*) from duebook.settlement_file") == 1


def _run_in_process(url: str, folder: str, file: str) -> None:
    make_world(url, Path(folder)).reconcile(Path(file))


@pytest.mark.crash
def test_a_killed_run_leaves_nothing_and_the_next_picks_up(world: World) -> None:
    world.book(booked(1, 1000))
    world.reconcile()
    file = world.adyen(settled(1, "10.00"))
    facts = "settlement_file settlement_entry settlement_entry_version settled_position".split()
    facts += "ledger_change intent proposed discrepancy reconciliation_run quarantined_row".split()

    def counts() -> dict[str, int]:
        return {name: world.value(f"select count(*) from duebook.{name}") for name in facts}

    before = counts()
    with world.connect() as gate:
        gate.autocommit = False
        gate.execute("select from duebook.ledger_payment for update")
        process = multiprocessing.get_context("spawn").Process(
            target=_run_in_process, args=(world.url, str(world.folder), str(file))
        )
        process.start()
        wait_for(
            lambda: (
                world.value(
                    "select count(*) from pg_stat_activity where datname = current_database()"
                    " and wait_event_type = 'Lock'"
                )
                == 1
            )
        )
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(DEADLINE)
        gate.rollback()
    wait_for(
        lambda: (
            world.value(
                "select count(*) from pg_stat_activity where datname = current_database()"
                " and pid <> pg_backend_pid()"
            )
            == 0
        )
    )
    assert counts() == before
    report = world.reconcile(file)
    # It was missing meanwhile: settled and cleared are two changes, and one is told.
    assert (report.entries_new, report.ledger_changes, report.intents) == (1, 2, 1)


def test_a_lost_connection_is_said_in_one_line_and_leaves_nothing(world: World) -> None:
    world.book(booked(1, 1000))
    world.reconcile()
    file = world.adyen(settled(1, "10.00"))
    errors: list[BaseException] = []

    def run() -> None:
        try:
            world.reconcile(file)
        except UnavailableError as error:
            errors.append(error)

    with world.connect() as gate:
        gate.autocommit = False
        gate.execute("select from duebook.ledger_payment for update")
        thread = threading.Thread(target=run)
        thread.start()
        waiting = (
            "select pid from pg_stat_activity where datname = current_database()"
            " and wait_event_type = 'Lock'"
        )
        wait_for(lambda: len(world.rows(waiting)) == 1)
        world.value("select pg_terminate_backend(%s)", world.value(waiting))
        thread.join(DEADLINE)
        gate.rollback()
    assert len(errors) == 1
    assert "\n" not in str(errors[0])
    assert world.value("select count(*) from duebook.settlement_entry") == 0
    assert world.reconcile(file).entries_new == 1


# ---- the same evidence in other shapes --------------------------------------------------------


def night(seed: int) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """A ledger and a batch with a bit of everything."""
    chance = random.Random(seed)
    rows, books, net = [], [], 0
    for number in range(40):
        cents = 100 + chance.randrange(100_000)
        rows.append(settled(number, f"{cents / 100:.2f}", fee="0.10"))
        net += cents - 10
        if number % 7 == 3:
            rows.append(
                adyen_row(
                    "Refunded",
                    "-0.50",
                    psp=f"PSP{number}",
                    reference=f"REF{number}",
                    created="2026-03-02 09:00:00",
                )
            )
            net -= 50
        if number % 11 == 5:
            rows.append(
                adyen_row("Chargeback", "-1.00", psp=f"PSP{number}", reference=f"REF{number}")
            )
            net -= 100
        if number % 13 != 12:
            books.append(booked(number, cents if number % 5 else cents + 1))
    rows.append(adyen_row("Fee", "-3.00"))
    rows.append(adyen_row("MiscCosts", "-1.00", modification="costs"))
    rows.append(adyen_row("MiscCosts", "-1.00", modification="costs"))
    net -= 500
    rows.append(adyen_row("MerchantPayout", f"{-net / 100:.2f}", modification="TX1"))
    return rows, books


def facts(world: World) -> dict[str, Any]:
    """What must not depend on how the evidence came."""
    return {
        "positions": world.rows(
            "select account_id, payment_id, currency, captured_minor, refunded_minor,"
            " charged_back_minor, fee_minor, net_minor from duebook.settled_position"
            " order by 1, 2, 3"
        ),
        "statuses": world.rows(
            "select payment_id, settled_status from duebook_reports.ledger_vs_provider order by 1"
        ),
        "discrepancies": world.rows(
            "select kind, subject, provider_minor, ledger_minor from duebook.discrepancy"
            " where closed_at is null order by 1, 2"
        ),
        "batches": world.rows(
            "select batch_ref, currency, sum_minor, payout_minor, status"
            " from duebook.settlement_batch order by 1, 2"
        ),
    }


def intents(world: World) -> list[str]:
    rows = world.rows("select operation_key from duebook.intent order by 1")
    return [row["operation_key"] for row in rows]


def as_written(rows: list[dict[str, str]], folder: Path) -> bytes:
    return write_rows(folder / "plain.csv", ADYEN_HEADER, rows).read_bytes()


def reordered(rows: list[dict[str, str]], folder: Path) -> bytes:
    header = list(reversed(ADYEN_HEADER))
    return write_rows(folder / "reordered.csv", header, rows).read_bytes()


SHAPES: dict[str, Callable[[list[dict[str, str]], Path], bytes]] = {
    "shuffled": lambda rows, folder: as_written(random.Random(7).sample(rows, len(rows)), folder),
    "reversed": lambda rows, folder: as_written(rows[::-1], folder),
    "with a BOM": lambda rows, folder: b"\xef\xbb\xbf" + as_written(rows, folder),
    "with CRLF": lambda rows, folder: as_written(rows, folder).replace(b"\n", b"\r\n"),
    "columns reordered": reordered,
    "blank lines": lambda rows, folder: b"\n\n" + as_written(rows, folder).replace(b"\n", b"\n\n"),
    "all quoted": lambda rows, folder: b"\n".join(
        b",".join(b'"' + cell + b'"' for cell in line.split(b","))
        for line in as_written(rows, folder).splitlines()
    ),
    "a quoted newline": lambda rows, folder: as_written(
        [{**rows[0], "Reserved4": "two\nlines"}, *rows[1:]], folder
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_another_shape_of_a_file_says_the_same(
    shape: str, make_database: Callable[[], str], tmp_path: Path
) -> None:
    rows, books = night(1)
    worlds = [make_world(make_database(), tmp_path) for _ in range(2)]
    for world in worlds:
        world.book(*books)
    worlds[0].reconcile(worlds[0].text(as_written(rows, tmp_path)))
    worlds[1].reconcile(worlds[1].text(SHAPES[shape](rows, tmp_path)))
    assert facts(worlds[0]) == facts(worlds[1])
    assert intents(worlds[0]) == intents(worlds[1])


def test_splitting_and_repeating_change_no_total_and_tell_nothing_twice(
    make_database: Callable[[], str], tmp_path: Path
) -> None:
    rows, books = night(2)
    whole, split, together = (make_world(make_database(), tmp_path) for _ in range(3))
    for world in (whole, split, together):
        world.book(*books)
    whole.reconcile(whole.adyen(*rows))
    for part in (rows[25:], rows[:25], rows[25:]):
        # Delivered in reverse order, and once again under other bytes.
        split.reconcile(split.adyen(*part))
    split.reconcile(split.text(b"\xef\xbb\xbf" + as_written(rows, tmp_path)))
    together.reconcile(together.adyen(*rows[25:]), together.adyen(*rows[:25]))
    assert facts(whole) == facts(split) == facts(together)
    assert intents(whole) == intents(together)
    assert len(intents(split)) == len(set(intents(split)))


def test_the_fast_and_the_tolerant_way_lay_down_the_same(
    make_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from duebook.services import raw_rows

    rows, _ = night(3)
    rows.insert(4, {**rows[3], "Net Currency": "XTX", "Psp Reference": "bad"})
    fast, tolerant = (make_world(make_database(), tmp_path) for _ in range(2))
    content = as_written(rows, tmp_path)
    fast.reconcile(fast.text(content))
    monkeypatch.setattr(raw_rows, "_copy_bytes", lambda *_: False)
    tolerant.reconcile(tolerant.text(content))
    statement = (
        "select entry_id, line_no, gross_minor, net_minor, fee_minor, occurred_at, body"
        " from duebook.settlement_entry_version order by 1"
    )
    assert fast.rows(statement) == tolerant.rows(statement)
    rejected = "select line_no, column_name, value, reason, raw from duebook.quarantined_row"
    assert fast.rows(rejected) == tolerant.rows(rejected)
    assert len(fast.rows(rejected)) == 1


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_matched_pending_and_differing_add_up_to_the_full_outer_count(
    data: st.DataObject, make_database: Callable[[], str], tmp_path: Path
) -> None:
    world = make_world(make_database(), tmp_path)
    amounts = st.integers(1, 5)
    books = data.draw(st.dictionaries(st.integers(1, 12), amounts, max_size=8), "booked")
    evidence = data.draw(st.dictionaries(st.integers(1, 12), amounts, max_size=8), "settled")
    if books:
        world.book(*(booked(n, amount * 100) for n, amount in books.items()))
    report = world.reconcile(world.adyen(*(settled(n, f"{a}.00") for n, a in evidence.items())))
    subjects = world.value(
        "select count(distinct subject) from duebook.discrepancy"
        " where closed_at is null and kind <> 'unexplained_remainder'"
    )
    assert report.matched + report.pending + subjects == len(set(books) | set(evidence))
    assert report.matched == sum(books.get(n) == amount for n, amount in evidence.items())
    again = world.reconcile()
    assert (again.entries_new, again.ledger_changes, again.intents) == (0, 0, 0)
    assert again.discrepancies == report.discrepancies
    changes = world.rows("select * from duebook.ledger_change where change_kind = 'balance'")
    assert all(
        (c["before_status"], c["before_captured_minor"])
        != (c["after_status"], c["after_captured_minor"])
        for c in changes
    )
