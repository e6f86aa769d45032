"""Every case at a small size: that the results are right; how fast they come is not asked."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from bench import report
from bench.cases.diff_1m import Diff
from bench.cases.diff_scale import DiffAgain, DiffGrowth, DiffLarge
from bench.cases.drain_200k import Drain
from bench.cases.send_https import SendHttps
from bench.cases.send_smtp import Send
from bench.harness import Bench, Figures, Goal, Metric, Reporter, Row, rows_of
from bench.processes import BenchError, environment, run_group, run_measured
from bench.server import BenchServer, parameters

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def server() -> Iterator[BenchServer]:
    with BenchServer(durable=False) as running:
        yield running


@pytest.fixture
def bench(server: BenchServer, tmp_path: Path) -> Bench:
    reporter = Reporter(Console(file=io.StringIO()))
    return Bench(
        server=server, rounds=1, is_full=False, reporter=reporter, folder=tmp_path, scale=0.002
    )


def test_a_diff_finds_what_changed_and_so_do_its_peers(bench: Bench) -> None:
    # The case itself refuses a contender that finds or writes anything but the changed rows.
    rows = Diff().run(bench)
    times = {row.peer: row for row in rows if row.unit == "s"}
    assert set(times) == {"pandas", "polars"}
    assert all(row.ours > 0 and row.theirs and row.ratio for row in times.values())
    memory = [row for row in rows if row.unit == "MB" and row.peer is None]
    assert [row.goal for row in memory] == ["ours < 200"]
    assert 20 < memory[0].ours < 200


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_the_larger_diffs_find_what_changed_beside_a_plain_copy(bench: Bench) -> None:
    bench.is_full, bench.scale = True, 0.0004
    large = {row.peer: row for row in DiffLarge().run(bench) if row.unit == "s"}
    assert set(large) == {"pandas", "polars", "duckdb", "copy"}
    assert large["copy"].goal == "ratio >= 0.769"
    growth = DiffGrowth().run(bench)
    assert [row.metric for row in growth] == [
        "seconds a million rows, at 1,000,000 beside 100,000",
        "seconds a million rows, at 10,000,000 beside 100,000",
    ]
    assert {row.peer for row in growth} == {"at the smallest"}


def test_a_file_that_says_nothing_new_changes_nothing(bench: Bench) -> None:
    again = {row.peer: row for row in DiffAgain().run(bench)}
    assert set(again) == {"polars", "copy"}
    assert again["copy"].goal == "ratio >= 0.833"


def test_a_drain_ends_every_promise_once_and_so_do_its_peers(bench: Bench) -> None:
    rows = Drain().run(bench)
    assert {(row.metric, row.peer) for row in rows} == {
        (f"drain, {accounts}", peer)
        for accounts in ("1 account", "200 accounts", "5,000 accounts")
        for peer in ("bare append", "PGMQ-like archive")
    }
    goals = {row.metric: row.goal for row in rows if row.peer == "bare append"}
    assert goals == {
        "drain, 1 account": "ratio >= 0.35",
        "drain, 200 accounts": "ratio >= 0.35",
        "drain, 5,000 accounts": "ratio >= 0.2",
    }


def test_every_notice_is_mailed_once_and_ended_once(bench: Bench) -> None:
    # The case itself refuses a contender whose mails, Message-IDs or outcomes are not as many.
    bench.scale = 0.02
    rows = Send().run(bench)
    assert {(row.metric, row.peer) for row in rows if row.unit == "messages/s"} == {
        (f"promise to outcome by mail, windows of {window}", peer)
        for window in (50, 500)
        for peer in ("smtplib, bytes", "smtplib, EmailMessage", "aiosmtplib, bytes")
    }
    assert [row.goal for row in rows[:3]] == ["ratio >= 2", "ratio >= 10", None]


def test_webhooks_all_arrive_and_end_once_and_so_do_those_of_its_peer(bench: Bench) -> None:
    # The case itself refuses a contender that posts more or less, or ends anything otherwise.
    rows = SendHttps().run(bench)
    assert [(row.peer, row.goal) for row in rows] == [("aiohttp", "ratio >= 0.8")]
    assert all(row.ours > 0 and row.theirs and row.ratio for row in rows)


def test_a_wrong_result_gives_no_figure(
    bench: Bench, server: BenchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.cases import drain_200k

    fill = drain_200k.fill
    monkeypatch.setattr(
        drain_200k, "fill", lambda url, rows, accounts: fill(url, rows - 1, accounts)
    )
    with pytest.raises(BenchError, match="count_drained"):
        Drain().run(bench)
    server.drop("drain")


def test_the_server_keeps_every_promise() -> None:
    stated = parameters()
    assert (stated["fsync"], stated["synchronous_commit"], stated["full_page_writes"]) == (
        "on",
        "on",
        "on",
    )


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    with BenchServer(durable=False) as server:
        home = server.home
        running = {child.pid for child in psutil.Process().children(recursive=True)}
        assert home.is_dir()
    assert not home.exists()
    assert not [pid for pid in running if _is_alive_under(pid, home)]


def _is_alive_under(pid: int, home: Path) -> bool:
    try:
        return str(home) in " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def test_a_ratio_is_the_median_of_its_rounds() -> None:
    found: dict[str, list[Figures]] = {
        "ours": [{"s": 1.0}, {"s": 2.0}, {"s": 10.0}],
        "peer": [{"s": 3.0}, {"s": 4.0}, {"s": 5.0}],
    }
    metric = Metric(
        key="s", name="t", unit="s", is_smaller_better=True, goals={"peer": Goal("ratio", ">", 1)}
    )
    (row,) = rows_of("case", metric, found)
    assert (row.ours, row.theirs, row.ratio, row.met) == (2.0, 4.0, 2.0, True)
    assert (row.ratio_low, row.ratio_high, row.rounds) == (0.5, 3.0, 3)


@pytest.mark.parametrize(
    ("goal", "ours", "ratio", "met"),
    [
        (Goal("ratio", ">=", 0.35), 1.0, 0.35, True),
        (Goal("ratio", ">=", 0.35), 1.0, 0.349, False),
        (Goal("ratio", ">", 1), 1.0, 1.0, False),
        (Goal("ours", "<", 200), 200.0, None, False),
        (Goal("ours", "<", 200), 199.0, None, True),
        (Goal("ratio", ">", 1), 1.0, None, False),
    ],
)
def test_a_goal_is_met_or_not(goal: Goal, ours: float, ratio: float | None, met: bool) -> None:
    assert goal.is_met(ours, ratio) is met


def test_a_process_is_measured_with_its_start_and_its_memory() -> None:
    megabytes = run_measured(["-c", "x = bytearray(100 * 2**20); print('said')"], environment(""))
    nothing = run_measured(["-c", "pass"], environment(""))
    assert megabytes.stdout == "said\n"
    assert 100 < megabytes.peak_rss_mb < 160
    # Not the memory of this test session, which started it.
    assert nothing.peak_rss_mb < 40
    assert 0 < nothing.seconds < 60


def test_a_process_that_fails_is_named_with_its_last_line() -> None:
    with pytest.raises(BenchError, match=r"exit 1: ValueError: no"):
        run_measured(["-c", "raise ValueError('no')"], environment(""))
    with pytest.raises(BenchError, match=r"did not get ready"):
        run_group("bench.peers.duebook_sender", [{}], environment("postgresql://127.0.0.1:1/x"))


def test_a_process_that_hangs_is_ended() -> None:
    with pytest.raises(Exception, match="timed out"):
        run_measured(["-c", "import time; time.sleep(100)"], environment(""), timeout=0.5)
    assert not [
        child
        for child in psutil.Process().children(recursive=True)
        if "time.sleep(100)" in " ".join(child.cmdline())
    ]


def test_results_are_written_and_other_cases_keep_theirs(tmp_path: Path) -> None:
    path, page = tmp_path / "results.json", tmp_path / "RESULTS.md"
    opens, closes = "<!-- figures: written by `python -m bench` -->", "<!-- end of figures -->"
    page.write_text(f"method\n{opens}\nold\n{closes}\nend\n")
    first, second = _row("a", 1.0), _row("b", 2.0)
    report.write_json([first, second], path)
    merged = report.merge([_row("a", 3.0)], path, ["a"])
    assert [(row.case, row.ours) for row in merged] == [("a", 3.0), ("b", 2.0)]
    report.write_json(merged, path)
    report.write_markdown(merged, {"cores": "2"}, page)
    documents = json.loads(path.read_text())
    wanted = {"case", "metric", "unit", "ours", "peer", "theirs", "ratio", "goal", "met"}
    assert all(wanted <= each.keys() for each in documents)
    text = page.read_text()
    assert text.startswith("method\n")
    assert text.endswith("end\n")
    assert "old" not in text
    assert "| a | t | 3.00 s | peer |" in text
    assert "- cores: 2" in text


def _row(case: str, ours: float) -> Row:
    return Row(case, "t", "s", ours, "peer", 2.0, 2.0 / ours, "ratio > 1", ours < 2.0, 1, 0.5, 2.5)
