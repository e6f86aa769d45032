"""Incidents: what they freeze, that a sweep rests, and that closing proves what became of it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.channels.base import Message, SendResult
from duebook.db.connect import Connect, connect_url
from duebook.errors import InputError, RefusedError
from duebook.services import incident
from duebook.services.resume import follow
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.conftest import DuebookCli
from tests.due_work import ScriptedChannel, add_due, places, start_sender, value, wait_for

Conn = psycopg.Connection[Any]
BAND = timedelta(minutes=5)
CONFIG = """
quiet_hours = "none"

[provider_accounts.one]
provider = "adyen"
mode = "dry_run"
settle_within = "P3D"
zone = "UTC"

[kinds.payment_settled]
enabled = true
channel = "noop"
notify_after = "PT0S"
give_up_after = "P7D"
supersedes = true
catch_up = "all"
catch_up_window = "P3D"
max_occurrences = 100
spread_per_minute = 600
max_tries = 8
max_claims = 20

[channels.noop]
"""


@pytest.fixture
def connect(database_url: str) -> Connect:
    """Connections to this test's database."""
    return partial(connect_url, database_url, autocommit=True)


@pytest.fixture
def run(connect: Connect) -> Callable[..., SweepReport]:
    """A sweep of a scripted channel; named arguments are those of the request."""

    def run(channel: ScriptedChannel | None = None, **request: Any) -> SweepReport:
        channel = channel or ScriptedChannel()
        return sweep(
            connect,
            SweepRequest(**{"environment": "test", "batch_size": 100, **request}),
            {channel.name: channel},
        )

    return run


Run = Callable[..., SweepReport]


def open_it(connect: Connect, name: str = "relay-down", **other: Any) -> dict[str, Any]:
    stated = {"reason": "the relay is down", "band": BAND, "pauses_sweep": True, "by": "ada"}
    return incident.open_incident(connect, name=name, **{**stated, **other})


class TestOpening:
    def test_one_is_open_at_a_time_and_names_are_not_used_twice(self, connect: Connect) -> None:
        open_it(connect, pauses_sweep=False)
        with pytest.raises(RefusedError, match="incident relay-down is open"):
            open_it(connect, "other")
        incident.close_incident(connect, None, by="ada")
        with pytest.raises(RefusedError, match="relay-down was closed before"):
            open_it(connect)
        assert open_it(connect, "other")["name"] == "other"

    def test_two_that_open_at_once_have_one_winner(self, connect: Connect) -> None:
        barrier, answers = threading.Barrier(8), []

        def race(number: int) -> None:
            barrier.wait()
            try:
                answers.append(open_it(connect, f"incident-{number}")["name"])
            except RefusedError as error:
                answers.append(str(error))

        racers = [threading.Thread(target=race, args=[number]) for number in range(8)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join(60)
        won = [answer for answer in answers if answer.startswith("incident-")]
        assert len(won) == 1
        assert [a for a in answers if a not in won] == [
            f"incident {won[0]} is open; one at a time"
        ] * 7

    @pytest.mark.parametrize(
        ("other", "says"),
        [
            ({"name": "a b"}, "no name of an incident"),
            ({"reason": " "}, "states its reason"),
            ({"band": timedelta(0)}, "at least a second"),
        ],
    )
    def test_what_it_can_not_mean_is_refused(
        self, connect: Connect, other: dict[str, Any], says: str
    ) -> None:
        with pytest.raises(InputError, match=says):
            open_it(connect, **other)

    def test_who_opened_and_why_is_audited(self, connect: Connect, conn: Conn) -> None:
        add_due(conn, 3)
        open_it(connect)
        row = conn.execute(
            "select actor, subject, detail from duebook.audit_event where action = 'open_incident'"
        ).fetchone()
        assert row is not None
        assert row[:2] == ("ada", "incident:relay-down")
        assert row[2]["reason"] == "the relay is down"
        assert row[2]["due"] == 3


class TestFreeze:
    """What an open incident refuses, and what it lets go on."""

    def test_the_command_line_refuses_manual_replay_by_the_name(
        self, connect: Connect, duebook_cli: DuebookCli
    ) -> None:
        open_it(connect, pauses_sweep=False)
        for command in (
            ["sweep"],
            ["reconcile", "--account", "adyen"],
            ["resend", "payment_settled:noop:stripe:p:t1:v1", "--reason", "why"],
            ["rebuild", "--apply"],
            ["events"],
        ):
            done = duebook_cli.in_process(*command)
            assert done.code == 2
            assert "incident relay-down is open" in done.stderr
            assert len(done.stderr.strip().splitlines()) == 1
        incident.close_incident(connect, None, by="ada")
        assert duebook_cli.in_process("sweep", "--json").json["paused"] is None

    def test_a_dry_run_writes_nothing_and_is_let_through(
        self, connect: Connect, duebook_cli: DuebookCli
    ) -> None:
        open_it(connect)
        done = duebook_cli.in_process("reconcile", "--account", "adyen", "--dry-run")
        assert "relay-down" not in done.stderr

    def test_a_paused_sweep_claims_nothing_and_says_by_what(
        self, connect: Connect, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 20)
        open_it(connect)
        channel = ScriptedChannel()
        report = run(channel).to_json()
        assert (report["claimed"], report["paused"], report["backlog"]) == (0, "relay-down", 20)
        assert channel.log == []
        assert places(conn) == {"due": 20}
        incident.resume_incident(connect, None, by="ada")
        assert run(channel).to_json()["paused"] is None
        assert places(conn) == {"outcome": 20}

    def test_an_incident_that_does_not_pause_lets_sweeps_go_on(
        self, connect: Connect, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 5)
        open_it(connect, pauses_sweep=False)
        report = run().to_json()
        assert (report["sent"], report["paused"]) == (5, None)

    def test_a_sweep_in_mid_batch_ends_its_window_and_gives_the_rest_back(
        self, connect: Connect, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 30)

        def answer(message: Message, number: int) -> SendResult:
            if len(channel.log) == 3:
                open_it(connect)
            return SendResult("accepted")

        channel = ScriptedChannel(answer, max_concurrency=1)
        report = run(channel, window_messages=10).to_json()
        assert (report["sent"], report["released"]) == (10, 20)
        assert report["paused"] == "relay-down"
        assert places(conn) == {"due": 20, "outcome": 10}

    def test_the_claim_itself_gives_nothing_out(self, connect: Connect, conn: Conn) -> None:
        from tests.services.test_sweep import claim

        add_due(conn, 3)
        open_it(connect)
        assert claim(conn, 3) == (None, 0, 0)
        incident.resume_incident(connect, None, by="ada")
        assert claim(conn, 3)[1] == 3

    def test_no_sender_of_another_process_claims_either(
        self, connect: Connect, conn: Conn, database_url: str
    ) -> None:
        add_due(conn, 10)
        open_it(connect)
        with start_sender(database_url) as sender:
            sender.communicate(timeout=60)
        assert places(conn) == {"due": 10}

    def test_status_and_explain_say_what_rests_and_why(
        self, connect: Connect, conn: Conn, duebook_cli: DuebookCli
    ) -> None:
        add_due(conn, 1, due_in=timedelta(minutes=-10))
        open_it(connect)
        document = duebook_cli.in_process("status", "--json").json
        assert document["incident"]["name"] == "relay-down"
        needs = [need["what"] for need in document["needs"]]
        assert any("incident relay-down is open" in what for what in needs)
        assert not any("a sender last claimed" in what for what in needs)
        key = value(conn, "select operation_key from duebook.intent")
        told = duebook_cli.in_process("explain", key).stdout
        assert "incident relay-down pauses the sweeps" in " ".join(told.split())

    def test_nobody_is_woken_for_what_can_not_be_claimed(
        self, connect: Connect, conn: Conn
    ) -> None:
        from duebook.db.sql import query

        add_due(conn, 1)
        assert value(conn, query("find_due_wake")) is not None
        open_it(connect)
        assert value(conn, query("find_due_wake")) is None
        incident.resume_incident(connect, None, by="ada")
        assert value(conn, query("find_due_wake")) is not None


class TestClosing:
    def test_it_refuses_before_it_was_resumed(self, connect: Connect) -> None:
        open_it(connect)
        report = incident.close_incident(connect, None, by="ada")
        assert report["refused"] == ["not_resumed"]
        assert incident.list_incidents(connect)[0]["state"] == "open, sweeps paused"

    def test_it_refuses_while_what_was_due_is_still_due_and_names_the_keys(
        self, connect: Connect, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 25, due_in=timedelta(minutes=-10))
        open_it(connect)
        incident.resume_incident(connect, None, by="ada")
        report = incident.close_incident(connect, None, by="ada")
        assert report["refused"] == ["differs", "oldest_due"]
        assert report["differs"] == {"due": 25}
        assert len(report["differing_keys"]) == 20
        assert report["oldest_due_s"] > 600
        run()
        assert incident.close_incident(connect, None, by="grace")["refused"] == []
        assert incident.list_incidents(connect)[0]["state"] == "closed"

    def test_it_refuses_while_something_else_is_due_for_longer_than_the_band(
        self, connect: Connect, conn: Conn, run: Run
    ) -> None:
        open_it(connect, pauses_sweep=False, band=timedelta(minutes=2))
        add_due(conn, 1, due_in=timedelta(minutes=-3))
        assert incident.close_incident(connect, None, by="ada")["refused"] == ["oldest_due"]
        run()
        add_due(conn, 1, payments_from=5)
        assert incident.close_incident(connect, None, by="ada")["refused"] == []

    def test_a_row_that_is_nowhere_or_in_a_batch_differs(
        self, connect: Connect, conn: Conn
    ) -> None:
        from tests.services.test_sweep import claim

        add_due(conn, 3)
        open_it(connect, pauses_sweep=False)
        claim(conn, 1)
        conn.execute(
            "delete from duebook.due where intent_id = (select max(intent_id) from duebook.due)"
        )
        report = incident.close_incident(connect, None, by="ada")
        assert report["differs"] == {"batch": 1, "due": 1, "nowhere": 1}
        assert sorted(row["place"] for row in report["differing_keys"]) == [
            "batch",
            "due",
            "nowhere",
        ]

    def test_the_report_has_outcomes_doubts_policies_and_people(
        self, connect: Connect, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 6)
        add_due(conn, 2, prefix="b", with_contact=False)
        add_due(conn, 2, prefix="c", kind="payment_refunded")
        conn.execute(
            "update duebook.intent_kind set catch_up_window = '2 days'"
            " where kind = 'payment_refunded'"
        )
        open_it(connect)
        incident.resume_incident(connect, None, by="grace")
        answers = iter([SendResult("unknown", code="connection")])
        run(ScriptedChannel(lambda message, n: next(answers, SendResult("accepted"))))
        report = incident.close_incident(connect, None, by="ada")
        assert report["refused"] == []
        assert report["due"] == 10
        assert report["outcomes"] == {"sent": 7, "done": 0, "expired": {}}
        assert report["elsewhere"]["held"] == {"no_contact": 2}
        assert report["elsewhere"]["in_doubt"] == report["in_doubt"] == 1
        assert [row["cause"] for row in report["in_doubt_keys"]] == ["connection"]
        assert [(p["kind"], p["catch_up_window_s"], p["intents"]) for p in report["policies"]] == [
            ("payment_refunded", 2 * 86400, 2),
            ("payment_settled", 7 * 86400, 8),
        ]
        assert [report[f"{did}_by"] for did in ("opened", "resumed", "closed")] == [
            "ada",
            "grace",
            "ada",
        ]
        assert incident.read_report(connect, "relay-down") == report

    def test_policies_are_those_of_the_resume_and_later_changes_are_told(
        self, connect: Connect, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 1)
        open_it(connect)
        incident.resume_incident(connect, None, by="ada")
        conn.execute("update duebook.intent_kind set max_occurrences = 1")
        conn.execute(
            "insert into duebook.audit_event (actor, action, subject)"
            " values ('eve', 'apply_kind', 'payment_settled')"
        )
        run()
        report = incident.close_incident(connect, None, by="ada")
        assert report["policies"][0]["max_occurrences"] == 1_000_000
        assert [(c["by"], c["subject"]) for c in report["policy_changes"]] == [
            ("eve", "payment_settled")
        ]

    def test_what_was_put_off_stands_elsewhere_and_differs_only_past_the_band(
        self, connect: Connect, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 1)
        open_it(connect, pauses_sweep=False)
        full = SendResult("later", code="452 4.2.2", scope="message")
        run(ScriptedChannel(lambda message, n: full))
        report = incident.read_report(connect, "relay-down")
        assert report["elsewhere"]["later"] == {"retry": 1}
        conn.execute("update duebook.due set due_at = clock_timestamp()")
        report = incident.read_report(connect, "relay-down")
        assert (report["elsewhere"]["due_again"], report["differs"]) == (1, {})
        conn.execute("update duebook.due set due_at = clock_timestamp() - interval '6 minutes'")
        # Only its due time tells a row that was put off from one that never moved.
        conn.execute("update duebook.incident_intent set due_at = due_at - interval '1 hour'")
        assert incident.read_report(connect, "relay-down")["differs"] == {"due": 1}


class TestResuming:
    def test_again_is_a_no_op(self, connect: Connect, conn: Conn) -> None:
        open_it(connect)
        assert incident.resume_incident(connect, None, by="ada")["resumed"] is True
        at = value(conn, "select resumed_at from duebook.incident")
        assert incident.resume_incident(connect, "relay-down", by="eve")["resumed"] is False
        assert value(conn, "select resumed_at from duebook.incident") == at

    def test_without_an_open_one_it_is_refused(self, connect: Connect) -> None:
        with pytest.raises(RefusedError, match="no incident is open"):
            incident.resume_incident(connect, None, by="ada")
        with pytest.raises(RefusedError, match="there is no incident other"):
            incident.close_incident(connect, "other", by="ada")

    def test_a_sender_here_clears_the_backlog_and_the_curve_is_kept(
        self, connect: Connect, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 300, due_in=timedelta(minutes=-1))
        open_it(connect)
        found = incident.resume_incident(connect, None, by="ada")
        shown: list[incident.Sample] = []
        followed = follow(
            connect,
            found["incident_id"],
            every=timedelta(0),
            longest=timedelta(seconds=90),
            show=shown.append,
            sweep_once=lambda stop: run(should_stop=stop),
        )
        assert followed.is_clear
        assert followed.here is not None
        assert followed.here["sent"] == 300
        assert shown == followed.samples
        assert shown[-1].sent == 300
        for one, following in itertools.pairwise(shown):
            assert one.due >= following.due
        report = incident.close_incident(connect, None, by="ada")
        assert report["samples"] == [sample.to_json() for sample in followed.samples]

    def test_it_never_looks_more_than_once_a_second(self, connect: Connect, conn: Conn) -> None:
        add_due(conn, 1)
        open_it(connect)
        found = incident.resume_incident(connect, None, by="ada")
        pauses: list[float] = []

        def stop(seconds: float) -> bool:
            pauses.append(seconds)
            return len(pauses) == 3

        looks = incident.watch(
            connect,
            found["incident_id"],
            every=timedelta(milliseconds=1),
            longest=None,
            should_stop=stop,
        )
        assert len(list(looks)) == 3
        assert min(pauses) >= 1

    def test_what_ends_the_sender_here_is_told(self, connect: Connect, conn: Conn) -> None:
        add_due(conn, 1)
        open_it(connect)
        found = incident.resume_incident(connect, None, by="ada")

        def fail(stop: Callable[[], bool]) -> SweepReport:
            raise RefusedError("this database is a copy")

        with pytest.raises(RefusedError, match="is a copy"):
            follow(
                connect,
                found["incident_id"],
                every=timedelta(0),
                longest=timedelta(seconds=90),
                show=lambda sample: None,
                sweep_once=fail,
            )
        assert value(conn, "select jsonb_array_length(samples) from duebook.incident") >= 1


class TestCommands:
    def test_an_incident_from_open_to_report(
        self, conn: Conn, duebook_cli: DuebookCli, run: Run
    ) -> None:
        add_due(conn, 4)
        said = duebook_cli.in_process(
            "incident", "open", "--name", "x", "--reason", "why", "--band", "PT5M", "--pause-sweep"
        )
        assert said.code == 0, said.stderr
        assert "sweeps claim nothing" in said.stdout
        refused = duebook_cli.in_process("incident", "close", "--json")
        assert (refused.code, refused.json["refused"]) == (2, ["not_resumed", "differs"])
        watched = duebook_cli.in_process("incident", "resume", "--for", "PT1S", "--json")
        assert watched.code == 1
        assert watched.json["samples"][-1]["due"] == 4
        run()
        assert duebook_cli.in_process("incident", "resume").code == 0
        closed = duebook_cli.in_process("incident", "close")
        assert closed.code == 0, closed.stdout
        assert "sent" in closed.stdout
        report = duebook_cli.in_process("incident", "report", "x", "--json").json
        assert report["outcomes"]["sent"] == 4
        assert duebook_cli.in_process("incident", "report", "y").code == 2
        assert "closed" in duebook_cli.in_process("incident", "list").stdout

    def test_a_sender_here_sends_what_is_due(
        self, conn: Conn, duebook_cli: DuebookCli, tmp_path: Path
    ) -> None:
        config = tmp_path / "own.toml"
        config.write_text(CONFIG)
        duebook_cli.environment["DUEBOOK_CONFIG_FILE"] = str(config)
        duebook_cli.environment["DUEBOOK_WITNESS"] = str(tmp_path / "witness")
        add_due(conn, 4)
        duebook_cli.in_process(
            "incident", "open", "--name", "x", "--reason", "why", "--band", "PT5M", "--pause-sweep"
        )
        told = duebook_cli.in_process("incident", "resume", "--here", "--every", "PT1S")
        assert told.code == 0, told.stderr
        assert "nothing is due any more: 4 have ended" in told.stdout
        assert "sent from here: 4" in told.stdout
        assert places(conn) == {"outcome": 4}

    def test_an_interrupted_resume_stops_looking_and_says_what_is_left(
        self, conn: Conn, duebook_cli: DuebookCli
    ) -> None:
        import signal

        add_due(conn, 4)
        duebook_cli.in_process(
            "incident", "open", "--name", "x", "--reason", "why", "--band", "PT5M", "--pause-sweep"
        )
        with duebook_cli.start("incident", "resume", "--json") as watching:
            wait_for(
                lambda: value(conn, "select resumed_at from duebook.incident"), "the resume", 60
            )
            wait_for(
                lambda: value(
                    conn,
                    "select count(*) from pg_stat_activity where datname = current_database()"
                    " and query like '%incident_fates%' and state = 'idle'"
                    " and pid <> pg_backend_pid()",
                ),
                "a first look",
                60,
            )
            watching.send_signal(signal.SIGINT)
            out, err = watching.communicate(timeout=60)
        assert watching.returncode == 1, err
        assert '"interrupted": true' in out

    @pytest.mark.parametrize("band", ["5m", "PT0S", "-PT5M", ""])
    def test_a_band_that_is_no_duration_is_refused(
        self, duebook_cli: DuebookCli, band: str
    ) -> None:
        done = duebook_cli.in_process(
            "incident", "open", "--name", "x", "--reason", "why", "--band", band
        )
        assert done.code == 2
        assert "--band" in done.stderr
