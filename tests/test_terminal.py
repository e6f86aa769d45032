"""What a person sees, at the width of a terminal and in a pipe."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from duebook import terminal

KEY = "payment_settled:email:stripe:" + "P-2026-11-30-000000001" * 4 + ":txn_1NXWPnCo6bFb1KQto:v12"
BATCH = {
    "batch_ref": "380",
    "currency": "EUR",
    "sum_minor": 5530807,
    "payout_minor": -5530807,
    "difference_minor": 0,
    "status": "closed",
}
OPEN = BATCH | {
    "batch_ref": "po_1NXWPnCo6bFb1KQto6C8OWvE",
    "sum_minor": 123456789012,
    "payout_minor": -123456789003,
    "difference_minor": 9,
    "status": "not_closed",
}
RECONCILE = {
    "run_id": 12,
    "provider_account": "adyen",
    "mode": "dry_run",
    "as_of": "2026-11-30T02:00:00Z",
    "entries_new": 228,
    "entries_changed": 0,
    "entries_unchanged": 12000,
    "quarantined": 1,
    "matched": 190,
    "pending": 3,
    "discrepancies": {"missing_in_ledger": 2, "amount_mismatch": 0},
    "ledger_changes": 190,
    "intents": 0,
    "batches": [BATCH, OPEN],
    "quarantined_rows": [
        {
            "file_name": "settlement_detail_report_batch_666.csv",
            "line_no": 3,
            "column_name": None,
            "value": "12,3x",
            "reason": "15 of 30 cells",
            "expected": "30 cells",
        }
    ],
}
SWEEP = {
    "claimed": 500,
    "sent": 490,
    "done": 0,
    "deferred": 3,
    "expired": 2,
    "unknown": 5,
    "late": 0,
    "stale_starts": 0,
    "backlog": 12,
    "oldest_due_s": 75,
}
STATUS: dict[str, Any] = {
    "now": "2026-11-30T02:00:00Z",
    "environment": {"environment": "local", "is_test": False, "refusal": None},
    "provider_accounts": [
        {
            "provider_account": "stripe",
            "mode": "live",
            "last_run_id": 3,
            "freshness_s": 86400,
            "is_stale": False,
            "discrepancy_count": 2,
            "batches_not_closed": 0,
            "quarantined": 0,
        }
    ],
    "intents": {
        "proposed": 1,
        "scheduled": 400000,
        "enqueued": 0,
        "unknown": 1,
        "held": 0,
        "ended": 12345678,
        "is_ended_estimated": True,
    },
    "backlog": 7,
    "oldest_due_s": 420,
    "events": {"pending": 3, "oldest_s": 60, "given_up": 0},
    "holds": {"open": 12, "unswept": 3, "oldest_unswept_s": 400},
    "next_due_at": None,
    "last_claim_at": None,
    "batches": [
        {"batch_id": 9, "sender": "worker-1", "mark": 50, "size": 500, "is_lapsed": True},
    ],
    "dags": {"due_sweep": True},
    "dags_unknown_because": None,
    "needs": [{"what": "1 notice in doubt", "do": f"look there: `duebook explain {KEY}`"}],
}
EVENT = {
    "at": "2026-11-28T22:50:18.1Z",
    "event": "ledger_change",
    "text": "pending → settled; captured EUR 0.00 → EUR 12,345,678.91 (stripe, run 1, by txn_1 v2)",
    "payment_id": "P-1",
}
EXPLAIN = {
    "subject": "P-1",
    "told_at": "2026-11-30T02:00:00Z",
    "matches": [
        {
            "match": "payment",
            "title": "payment P-1 of account acme, reference ch_1",
            "account_id": "acme",
            "payment_ids": ["P-1"],
            "facts": {},
            "summary": ["booked   EUR 12,345,678.91, succeeded, stripe"],
            "answers": [
                {
                    "code": "not_due_yet",
                    "text": "payment_settled: waits until 2026-12-05 22:50 UTC; 4 d 23 h left",
                    "was_sent": False,
                    "payment_id": "P-1",
                    "operation_key": KEY,
                }
            ],
            "events": [
                EVENT,
                EVENT | {"at": "2026-12-05T22:50:18Z", "event": "due", "text": "becomes due"},
            ],
            "notes": [],
        }
    ],
}
DOCTOR = {
    "findings": [
        {"name": "database", "ok": True, "detail": "PostgreSQL 18.6", "remedy": ""},
        {
            "name": "connection stripe_default",
            "ok": False,
            "detail": "not defined; provider account stripe needs it",
            "remedy": "define AIRFLOW_CONN_STRIPE_DEFAULT or the connection stripe_default",
        },
    ],
    "exit_code": 1,
}
CHECK = {"violations": [{"invariant": "every intent stands in one place", "keys": [KEY]}]}
IMPORT = {
    "file": "ledger.csv",
    "new": 1200,
    "changed": 3,
    "exit_code": 1,
    "quarantined": 25,
    "quarantined_rows": [
        {
            "file_name": "ledger.csv",
            "line_no": n,
            "column_name": "amount",
            "reason": "not an amount",
        }
        for n in range(2, 27)
    ],
}
DOCUMENTS = {
    "reconcile": RECONCILE,
    "sweep": SWEEP,
    "status": STATUS,
    "explain": EXPLAIN,
    "doctor": DOCTOR,
    "check": CHECK,
    "import": IMPORT,
}


def shown(name: str, document: Any, width: int | None = None, encoding: str = "utf-8") -> list[str]:
    """The lines of a report on a terminal of that width, or in a pipe when there is none."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=stream, width=width, force_terminal=width is not None, color_system=None)
    getattr(terminal, f"render_{name}")(document, console)
    stream.seek(0)
    return stream.read().splitlines()


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_nothing_is_wider_than_the_terminal_but_a_key(name: str, width: int) -> None:
    lines = shown(name, DOCUMENTS[name], width)
    assert lines
    assert [line for line in lines if len(line) > width and KEY not in line] == []


@pytest.mark.parametrize("width", [40, 80, 120, None])
@pytest.mark.parametrize("name", ["status", "explain", "check"])
def test_a_key_is_never_cut(name: str, width: int | None) -> None:
    assert any(KEY in line for line in shown(name, DOCUMENTS[name], width))


@pytest.mark.parametrize("width", [60, 80, 120, None])
def test_money_and_durations_are_exact_and_whole(width: int | None) -> None:
    text = "\n".join(shown("explain", EXPLAIN, width))
    assert "EUR 12,345,678.91" in text
    assert "4 d 23 h" in text
    text = "\n".join(shown("reconcile", RECONCILE, width))
    assert "EUR 1,234,567,890.12" in text
    assert "EUR 0.09" in text


def test_a_pipe_gets_one_fact_a_line() -> None:
    lines = shown("explain", EXPLAIN)
    (change,) = [line for line in lines if "ledger change" in line]
    assert change.startswith("2026-11-28 22:50:18Z")
    assert change.endswith("(stripe, run 1, by txn_1 v2)")
    assert not any("\x1b" in line for name in DOCUMENTS for line in shown(name, DOCUMENTS[name]))


def test_what_is_to_come_stands_after_now() -> None:
    lines = shown("explain", EXPLAIN, 80)
    now = next(i for i, line in enumerate(lines) if "(now)" in line)
    assert any("becomes due" in line for line in lines[now:])
    assert not any("becomes due" in line for line in lines[:now])


def test_a_batch_that_does_not_close_stands_first() -> None:
    lines = shown("reconcile", RECONCILE, 120)
    bad = next(i for i, line in enumerate(lines) if "not_closed" in line)
    good = next(i for i, line in enumerate(lines) if line.endswith(" closed"))
    assert bad < good


def test_many_batches_are_counted_and_not_listed() -> None:
    document = RECONCILE | {"batches": [OPEN] + [BATCH] * 400}
    lines = shown("reconcile", document, 120)
    assert len(lines) < 40
    assert any("381 more: 381 closed" in line for line in lines)


def test_a_bad_row_says_where_what_and_why() -> None:
    text = "\n".join(shown("reconcile", RECONCILE))
    assert (
        "settlement_detail_report_batch_666.csv line 3: 15 of 30 cells, read '12,3x', "
        "expected 30 cells"
    ) in text
    lines = shown("import", IMPORT)
    assert "ledger.csv line 2, column amount: not an amount" in lines[4]
    assert any("and 5 more" in line for line in lines)
    assert "exit_code" not in lines[1]


def test_a_sweep_says_what_waits() -> None:
    lines = shown("sweep", SWEEP)
    assert lines[0] == "500 claimed: 490 sent, 3 deferred, 2 expired, 5 unknown"
    assert "12 still due, the oldest for 1 min 15 s" in lines
    nothing = dict.fromkeys(SWEEP, 0) | {"oldest_due_s": None}
    assert shown("sweep", nothing) == ["0 claimed: nothing was due"]


def test_an_estimate_is_said_to_be_one() -> None:
    assert any("about 12,345,678 ended" in line for line in shown("status", STATUS))


def test_a_terminal_without_unicode_still_gets_its_report() -> None:
    lines = shown("explain", EXPLAIN, encoding="ascii")
    assert any("pending -> settled" in line for line in lines)


def test_braces_in_data_are_text_and_no_markup() -> None:
    document = {"violations": [{"invariant": "[red]x[/red] [link=y]", "keys": ["[bold]"]}]}
    assert shown("check", document)[0] == "✗ [red]x[/red] [link=y]: 1"


def test_progress_in_a_pipe_is_a_line_a_stage() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=80)
    with terminal.progress(console) as report:
        report("reading", 0, None)
        for done in range(1, 1000):
            report("comparing", done, 1000)
        report("comparing", 1000, 1000)
    assert stream.getvalue().splitlines() == [
        "reading",
        "comparing: 1 of 1,000",
        "comparing: 1,000 of 1,000",
    ]


def test_progress_on_a_terminal_leaves_nothing_behind() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=80, force_terminal=True)
    with terminal.progress(console) as report:
        report("[bold]comparing", 500, 1000)
    assert stream.getvalue().endswith("\x1b[2K")
