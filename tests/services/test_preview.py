"""The preview: what it says is what the resume then does, and it leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import sql

from duebook.channels.noop import NoopChannel
from duebook.db.connect import Connect, connect_url
from duebook.errors import RefusedError, UnavailableError
from duebook.services import incident
from duebook.services import preview as rehearsal
from duebook.services.preview import ChannelRate, Fate, PreviewRequest, flow, preview
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.calendar_work import add_address, add_reminders, backdate, clock, put
from tests.conftest import DuebookCli
from tests.due_work import ScriptedChannel, add_due, add_kind, value
from tests.hold_work import create, make_older
from tests.services.test_sweep import claim, lapse

Conn = psycopg.Connection[Any]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# Of these several are due; none of them can be told from the others by a second or two.
LATE: dict[str, Any] = {"due_in": -HOUR}


@pytest.fixture
def connect(database_url: str) -> Connect:
    """Connections to this test's database."""
    return partial(connect_url, database_url, autocommit=True)


def channels() -> dict[str, ScriptedChannel]:
    return {name: ScriptedChannel(name=name) for name in ("noop", "slow")}


def look(connect: Connect, **other: Any) -> dict[str, Any]:
    return preview(connect, PreviewRequest("test", **other), channels()).to_json()


@pytest.fixture
def run(connect: Connect) -> Callable[[], SweepReport]:
    """A sweep of both channels."""
    return lambda: sweep(connect, SweepRequest("test", batch_size=20), channels())


Run = Callable[[], SweepReport]


def make_mixed(conn: Conn) -> None:
    """Some of everything that a backlog can hold."""
    add_due(conn, 20, prefix="live")
    add_due(conn, 5, prefix="skipped", kind="skipping", **LATE)
    add_due(conn, 3, prefix="old", kind="short", **LATE)
    add_due(conn, 2, prefix="over", kind="payment_cleared", give_up_in=-HOUR / 2, **LATE)
    add_due(conn, 5, prefix="paced", kind="payment_missing", **LATE)
    add_due(conn, 6, prefix="same", kind="payment_disputed", **LATE)
    add_due(conn, 2, prefix="optout")
    add_due(conn, 3, prefix="suppressed")
    add_due(conn, 4, prefix="quiet")
    add_due(conn, 3, prefix="paused", kind="resting")
    add_due(conn, 2, prefix="dropped", kind="dropping")
    add_due(conn, 2, prefix="nobody", with_contact=False)
    add_due(conn, 1, prefix="text", kind="payment_unheard_of")
    add_due(conn, 8, prefix="slow", channel="slow", kind="payment_refunded")
    conn.execute(
        """
        update duebook.intent_kind set catch_up = 'skip' where kind = 'skipping';
        update duebook.intent_kind set catch_up_window = '30 minutes' where kind = 'short';
        update duebook.intent_kind set spread_per_minute = 1 where kind = 'payment_missing';
        update duebook.intent_kind set catch_up = 'latest' where kind = 'payment_disputed';
        update duebook.intent set subject = 'payment:same' where account_id like 'same%';
        insert into duebook.consent (account_id, kind, channel, granted, source)
        select distinct account_id, '*', '*', false, 'a letter'
        from duebook.intent where account_id like 'optout%';
        insert into duebook.suppression (account_id, channel, reason)
        select distinct account_id, 'noop', 'asked'
        from duebook.intent where account_id like 'suppressed%';
        update duebook.contact set region = 'QH' where account_id like 'quiet%';
        insert into duebook.quiet_hours (region, from_local, until_local)
        select
            'QH',
            ((clock_timestamp() - interval '2 hours') at time zone 'UTC')::time,
            ((clock_timestamp() + interval '2 hours') at time zone 'UTC')::time;
        select duebook.pause_intents('kind', 'resting', 'hold', 'a test', 'pytest');
        select duebook.pause_intents('kind', 'dropping', 'drop', 'a test', 'pytest');
        insert into duebook.budget (channel, tokens, capacity, refill_per_minute)
        values ('slow', 3, 3, 1);
        """
    )
    make_calendar(conn)
    for number in range(4):
        create(conn, f"hold-{number}")
    make_older(conn)
    # Held until their contact is known, which it now is.
    add_due(conn, 3, prefix="found", with_contact=False)
    hold_without_contact(conn, "found")
    # A sender died after its claim.
    add_due(conn, 2, prefix="claimed", channel="noop", due_in=timedelta(days=-30) / 100)
    claim(conn, 2)
    lapse(conn)


def hold_without_contact(conn: Conn, prefix: str) -> None:
    conn.execute(
        """
        with gone as (delete from duebook.due where account_id like %(prefix)s returning *),
        held as (
            insert into duebook.held (
                account_id, intent_id, cause, due_at, kind, channel, give_up_at, tries, claims
            )
            select account_id, intent_id, 'no_contact', due_at, kind, channel, give_up_at, 0, 0
            from gone
        )
        insert into duebook.contact (account_id, channel, address, zone)
        select distinct account_id, channel, 'x@example.test', 'UTC' from gone
        """,
        {"prefix": f"{prefix}%"},
    )


def make_calendar(conn: Conn) -> None:
    add_reminders(conn)
    local = clock(conn)
    wall = {"wall_time": (local - HOUR).time().replace(second=0, microsecond=0)}
    day = {"weekdays": [(local - HOUR).isoweekday()]}
    for schedule, policy in (
        ("newest", {"catch_up": "latest"}),
        ("three", {"catch_up": "all", "max_occurrences": 3}),
        ("none", {"catch_up": "skip"}),
    ):
        add_address(conn, schedule)
        put(conn, schedule, schedule, spread_per_minute=1, **wall, **day, **policy)
        backdate(conn, 60 * DAY, schedule, schedule)


def became(conn: Conn) -> dict[str, Any]:
    """What really became of what an incident noted, counted without any of its functions."""

    def counted(statement: str) -> dict[str, int]:
        return dict(conn.execute(f"{statement} group by 1 order by 1").fetchall())

    noted = (
        "from duebook.incident_intent as n join duebook.intent as i using (account_id, intent_id)"
    )
    ended = f"{noted} join duebook.outcome as o using (account_id, operation_key)"
    expired = counted(f"select o.reason, count(*) {ended} where o.result = 'expired'")
    later = counted(
        f"""
        select
            (
                select c.reason from duebook.intent_change as c
                where c.account_id = n.account_id and c.intent_id = n.intent_id
                order by c.intent_change_id desc limit 1
            ),
            count(*)
        {noted} join duebook.due as d using (account_id, intent_id)
        where d.due_at > clock_timestamp()
        """
    )
    left = value(
        conn,
        f"select count(*) {noted} join duebook.due as d using (account_id, intent_id)"
        " where d.due_at <= clock_timestamp()",
    )
    return {
        "due": value(conn, "select count(*) from duebook.incident_intent"),
        "send": value(conn, f"select count(*) {ended} where o.result = 'sent'"),
        "internal": value(conn, f"select count(*) {ended} where o.result = 'done'"),
        "coalesce": expired.pop("superseded", 0),
        "expire": expired,
        "defer": dict(sorted({**later, **({"budget": left} if left else {})}.items())),
        "hold": counted(
            f"select h.cause, count(*) {noted} join duebook.held as h using (account_id, intent_id)"
        ),
    }


def said(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a preview."""
    names = ("due", "send", "internal", "coalesce", "expire", "defer", "hold")
    return {name: document[name] for name in names}


class TestEquality:
    def test_a_preview_equals_what_the_resume_then_does(
        self, conn: Conn, connect: Connect, run: Run
    ) -> None:
        make_mixed(conn)
        incident.open_incident(
            connect, name="x", reason="test", band=DAY, pauses_sweep=True, by="pytest"
        )
        assert run().to_json()["claimed"] == 0

        seen = look(connect)
        incident.resume_incident(connect, None, by="pytest")
        run()

        assert said(seen) == became(conn)
        assert seen["lifted"] == ["incident:x"]
        assert seen["expire"].keys() == {
            "dropped", "opted_out", "skipped", "suppressed", "too_late"
        }  # fmt: skip
        assert seen["coalesce"] > 5
        assert seen["defer"].keys() == {"budget", "quiet_hours", "spread"}
        assert seen["defer"]["spread"] == 4 + 3
        assert seen["hold"] == {"no_contact": 2, "paused": 3, "template": 1}
        assert (seen["internal"], seen["in_doubt"], seen["in_flight"]) == (4, 0, 0)
        report = incident.close_incident(connect, None, by="pytest")
        assert report["outcomes"]["sent"] == seen["send"]
        assert report["elsewhere"]["held"] == seen["hold"]

    def test_its_counts_add_up_to_what_is_due(self, conn: Conn, connect: Connect) -> None:
        make_mixed(conn)
        seen = look(connect)
        parts = [
            *(seen[name] for name in ("send", "coalesce", "internal", "in_doubt", "in_flight")),
            seen["proposed"],
            *(sum(seen[name].values()) for name in ("expire", "defer", "hold")),
        ]
        assert sum(parts) == seen["due"]

    def test_a_named_pause_is_lifted_too_when_asked(self, conn: Conn, connect: Connect) -> None:
        add_due(conn, 3, kind="payment_refunded")
        conn.execute("select duebook.pause_intents('all', '*', 'hold', 'why', 'pytest')")
        assert look(connect)["hold"] == {"paused": 3}
        seen = look(connect, lift=[("all", "*")])
        assert (seen["send"], seen["hold"], seen["lifted"]) == (3, {}, ["all"])

    def test_policies_are_those_that_decided(self, conn: Conn, connect: Connect) -> None:
        add_due(conn, 2)
        make_calendar(conn)
        policies = {
            (policy["kind"], policy["catch_up"]): policy for policy in look(connect)["policies"]
        }
        assert policies.keys() == {
            ("payment_settled", "all"),
            ("reminder", "latest"),
            ("reminder", "all"),
            ("reminder", "skip"),
        }
        assert policies["payment_settled", "all"]["intents"] == 2
        assert policies["reminder", "all"]["max_occurrences"] == 3
        assert policies["reminder", "skip"]["schedules"] == 1
        assert policies["reminder", "skip"]["schedule_names"] == ["none/none"]
        assert policies["reminder", "skip"]["intents"] >= 8

    def test_what_another_sender_holds_is_told_and_a_channel_without_a_sender(
        self, conn: Conn, connect: Connect
    ) -> None:
        add_due(conn, 3)
        claim(conn, 2)
        add_due(conn, 4, prefix="b", channel="sms", kind="payment_refunded")
        seen = look(connect)
        assert (seen["send"], seen["in_flight"]) == (1, 2)
        assert seen["defer"] == {"not_served": 4}


def contents(conn: Conn) -> dict[str, str]:
    """Every row of every table."""
    names = [
        row[0]
        for row in conn.execute(
            "select relname from pg_class"
            " where relnamespace = 'duebook'::regnamespace and relkind in ('r', 'p')"
        )
    ]
    return {
        name: value(
            conn,
            sql.SQL(
                "select coalesce(string_agg(t::text, E'\\n' order by t::text), '') from {} as t"
            )
            .format(sql.Identifier("duebook", name))
            .as_string(conn),
        )
        for name in names
    }


class TestTraces:
    def test_it_leaves_none(self, conn: Conn, connect: Connect) -> None:
        make_mixed(conn)
        incident.open_incident(
            connect, name="x", reason="test", band=DAY, pauses_sweep=True, by="pytest"
        )
        before = contents(conn)
        serving = channels()
        preview(connect, PreviewRequest("test"), serving)
        assert contents(conn) == before
        assert [channel.log for channel in serving.values()] == [[], []]

    def test_no_sweep_waits_for_it(
        self, conn: Conn, connect: Connect, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_calendar(conn)
        run()
        backdate(conn, 30 * DAY, "newest", "newest")
        add_due(conn, 10)
        swept: list[SweepReport] = []
        summary = rehearsal._summary

        def meanwhile(*arguments: Any) -> Any:
            swept.append(run())
            return summary(*arguments)

        monkeypatch.setattr(rehearsal, "_summary", meanwhile)
        seen = look(connect)
        assert seen["due"] >= 10
        assert [report.counts.claimed for report in swept] == [0]
        assert run().counts.claimed == seen["due"]

    def test_what_somebody_else_holds_ends_it_with_one_clear_line(
        self, conn: Conn, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rehearsal, "_LONGEST_WAIT_MS", 100)
        add_due(conn, 1)
        conn.execute("insert into duebook.budget values ('noop', 5, 5, 5)")
        before = contents(conn)
        with connect() as other, other.transaction():
            other.execute("select from duebook.budget for update")
            with pytest.raises(UnavailableError, match="nothing was changed: try again"):
                look(connect)
        assert contents(conn) == before

    def test_where_nothing_may_be_sent_it_says_so(self, conn: Conn, connect: Connect) -> None:
        add_due(conn, 1)
        with pytest.raises(RefusedError, match="the sender runs as other"):
            preview(connect, PreviewRequest("other"), channels())

    def test_it_is_bounded_in_time(self, conn: Conn, connect: Connect) -> None:
        add_due(conn, 1)
        with pytest.raises(UnavailableError, match="nothing was changed"):
            look(connect, longest=timedelta(microseconds=1000))

    def test_the_command_shows_it(self, conn: Conn, duebook_cli: DuebookCli) -> None:
        add_due(conn, 3)
        shown = duebook_cli.in_process("incident", "preview")
        assert shown.code == 0, shown.stderr
        assert "not_served" in shown.stdout
        assert duebook_cli.in_process("incident", "preview", "--json").json["due"] == 3
        assert duebook_cli.in_process("incident", "preview", "--lift", "x").code == 2


class TestFlow:
    """How many messages a minute, and for how long."""

    def fates(self, *rows: tuple[str, str, int | None, int]) -> list[Fate]:
        return [
            Fate(
                "email",
                place,
                reason,
                minute,
                count,
                None if minute is None else self.as_of + timedelta(minutes=minute, seconds=59),
            )
            for place, reason, minute, count in rows
        ]

    @pytest.fixture(autouse=True)
    def at(self, conn: Conn) -> None:
        self.as_of = clock(conn)

    def test_what_is_sent_at_once_stands_in_the_first_minute(self) -> None:
        assert flow(self.fates(("sent", "", None, 40)), {}, self.as_of) == (40, 0)

    def test_what_is_put_off_stands_in_its_own(self) -> None:
        fates = self.fates(("sent", "", None, 1), ("later", "spread", 0, 59), *(
            ("later", "spread", minute, 60) for minute in range(1, 11)
        ))  # fmt: skip
        assert flow(fates, {}, self.as_of) == (60, 659)

    def test_a_rate_spreads_what_waits_for_it(self) -> None:
        fates = self.fates(("sent", "", None, 100), ("due", "budget", None, 50))
        rate = ChannelRate(tokens=0, refill_per_minute=20, capacity=100, paused_s=0.0)
        assert flow(fates, {"email": rate}, self.as_of) == (120, 180)

    def test_a_rate_of_nothing_never_ends(self) -> None:
        fates = self.fates(("due", "budget", None, 50))
        rate = ChannelRate(tokens=0, refill_per_minute=0, capacity=100, paused_s=0.0)
        assert flow(fates, {"email": rate}, self.as_of) == (0, None)

    def test_a_paused_channel_begins_when_its_pause_ends(self) -> None:
        fates = self.fates(("due", "budget", None, 50))
        rate = ChannelRate(tokens=None, refill_per_minute=None, capacity=None, paused_s=600.0)
        assert flow(fates, {"email": rate}, self.as_of) == (50, 600)


@pytest.mark.prove
def test_fifty_thousand_are_previewed_in_seconds(conn: Conn, connect: Connect) -> None:
    add_kind(conn, "payment_settled", spread_per_minute=6000)
    add_due(conn, 50_000, accounts=2_000, due_in=-HOUR)
    conn.execute("analyze")
    noop = NoopChannel(io_timeout=timedelta(seconds=0.1))
    seen = preview(connect, PreviewRequest("test"), {"noop": noop})
    assert seen.due == 50_000
    assert seen.send + sum(seen.defer.values()) == 50_000
    assert 6000 <= seen.peak_per_minute <= 6000 + seen.send
