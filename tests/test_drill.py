"""The drill: every key ends as its table says, and one that does not is named."""

from __future__ import annotations

import io
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from rich.console import Console

from duebook.channels.base import message_id_for
from duebook.commands.drill import render_drill
from duebook.domain.calendar import Occurrence, Rule, occurrences, resolve
from duebook.drill import expected, zone
from duebook.drill.expected import Expected, Verdict, in_doubt_as_expected, judge
from duebook.drill.history import PAUSED_FOR, PUT_BEFORE, reminders
from duebook.drill.run import Drill, compare, conclude, drilled
from duebook.settings import Settings
from tests.conftest import DuebookCli

RUNBOOK = Path(__file__).resolve().parents[1] / "docs" / "runbook.md"
SENDER = "Drill <notices@drill.invalid>"
# Width of the output that docs/runbook.md shows.
WIDTH = 120
HOLD_7 = "expire:hold:hold-007:"
TOLD = "payment_settled:email:shop:told:txn_2:v1"


# ---- the whole of it --------------------------------------------------------------------------


@pytest.mark.crash
@pytest.mark.timeout(400)
def test_every_key_ends_as_its_table_says_and_a_wrong_one_is_named(settings: Settings) -> None:
    printed = io.StringIO()
    console = Console(file=printed, width=WIDTH, emoji=False)
    with drilled(settings, console) as (drill, report):
        document = {**conclude(drill, report), "seconds": 30.0}
        render_drill(document, console)
        assert databases(settings) == 1
        broken = compare_when_broken(drill)
    assert document["wrong"] == []
    assert document["violations"] == document["untold"] == report["refused"] == []
    assert document["ok"] is True
    counts = ("lost", "doubled", "in_doubt", "holds_expired", "reminders_sent")
    assert [document[name] for name in counts] == [0, 0, 0, 420, 18]
    assert document["explained"] == document["keys"] == 502
    assert document["catch_up"]["reminder"] == {"send": 18}
    assert document["were_in_doubt"] > 0
    assert document["tasks_twice"] > 0
    assert document["flushes_twice"] > 0
    assert_broken_as_done(broken)
    assert databases(settings) == 0
    assert list(settings.home.glob("drill-*")) == []
    assert masked(printed.getvalue()) == masked(shown_in_runbook())


def compare_when_broken(drill: Drill) -> Verdict:
    """An outcome is dropped, and a message is taken twice."""
    with drill.place.connect() as conn:
        conn.execute("delete from duebook.outcome where operation_key like %s", [f"{HOLD_7}%"])
    once = message_id_for("told", TOLD, drill.mail_sender)
    with drill.place.relay_log.open("a") as log:
        log.write(f"2026-12-01T00:00:00+00:00 relay postfix/cleanup[1]: D0: message-id={once}\n")
    return compare(drill)


def assert_broken_as_done(verdict: Verdict) -> None:
    hold, doubled = sorted(verdict.wrong, key=lambda each: each.operation_key)
    assert hold.operation_key.startswith(HOLD_7)
    assert hold.expected.startswith("done")
    assert hold.got == "lost"
    assert doubled.operation_key == TOLD
    assert doubled.got == "received 2x"
    assert (verdict.lost, verdict.doubled) == (1, 1)
    wrong_groups = [line.group for line in verdict.lines if not line.is_right]
    assert wrong_groups == [expected.HOLDS, expected.WEBHOOKS]


@pytest.mark.prove
@pytest.mark.crash
@pytest.mark.timeout(400)
def test_the_command_leaves_a_database_to_look_at_where_asked(
    duebook_cli: DuebookCli, settings: Settings
) -> None:
    killed = settings.home / "drill-4194303-left"
    killed.mkdir(parents=True)
    done = duebook_cli("drill", "--keep", "--json")
    document = done.json
    assert done.code == 0, document["wrong"]
    assert (document["lost"], document["doubled"], document["in_doubt"]) == (0, 0, 0)
    assert not killed.exists()
    assert (Path(document["home"]) / "mail.log").exists()
    assert databases(settings) == 1
    assert settings.database_url is not None
    with psycopg.connect(settings.database_url.get_secret_value(), autocommit=True) as conn:
        conn.execute(f"drop database {document['database']} with (force)")


def databases(settings: Settings) -> int:
    """How many databases of drills the server has."""
    assert settings.database_url is not None
    with psycopg.connect(settings.database_url.get_secret_value()) as conn:
        row = conn.execute(
            r"select count(*) from pg_database where datname like 'duebook\_drill\_%'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def shown_in_runbook() -> str:
    """What docs/runbook.md shows of a drill."""
    found = re.search(r"^\$ duebook drill\n(.*?)^```$", RUNBOOK.read_text(), re.DOTALL | re.M)
    assert found is not None, "docs/runbook.md shows no drill"
    return found[1]


def masked(text: str) -> list[str]:
    """Its lines without what differs from run to run: numbers, durations, widths."""
    text = re.sub(r"\b\d+ (d|h|min|s)( \d+ (h|min|s))?\b", "<span>", text)
    text = re.sub(r"\d[\d.,:]*", "#", text)
    lines = (" ".join(line.replace("─", "").split()) for line in text.splitlines())
    return [line for line in lines if line]


# ---- the table --------------------------------------------------------------------------------

HOLD = Expected(expected.HOLDS, "a", "expire:hold:h:2026-12-01T00:00:00Z", "done")
MIDNIGHT = datetime(2026, 12, 1, tzinfo=UTC)
NOTICE = Expected(
    expected.SETTLED, "a", "payment_settled:email:night:p:e:v1", "sent", due_at=MIDNIGHT
)


def row(one: Expected, **changed: Any) -> dict[str, Any]:
    """How a key stands that is as expected, but for what is changed."""
    return {
        "account_id": one.account_id,
        "operation_key": one.operation_key,
        "result": one.result,
        "reason": one.reason,
        "has_ended": True,
        "due_at": one.due_at,
        "intended_local": one.local,
        "case_of": one.case,
        "attempts": one.attempts or 1,
        **changed,
    }


def mails(*keys: Expected) -> Counter[str]:
    return Counter(message_id_for(*one.identity, SENDER) for one in keys)


def test_a_table_that_holds_has_nothing_wrong() -> None:
    verdict = judge([HOLD, NOTICE], [row(HOLD), row(NOTICE)], mails(NOTICE), SENDER)
    assert verdict.wrong == ()
    assert (verdict.lost, verdict.doubled) == (0, 0)
    assert [(line.group, line.keys, line.is_right) for line in verdict.lines] == [
        (expected.HOLDS, 1, True),
        (expected.SETTLED, 1, True),
    ]


@pytest.mark.parametrize(
    ("rows", "taken", "key", "got", "lost", "doubled"),
    [
        ([row(HOLD)], mails(), NOTICE, "no such key", 1, 0),
        ([row(HOLD), row(NOTICE)], mails(), NOTICE, "received 0x", 1, 0),
        ([row(HOLD), row(NOTICE)], mails(NOTICE, NOTICE), NOTICE, "received 2x", 0, 1),
        (
            [row(HOLD), row(NOTICE, result="unknown", has_ended=False)],
            mails(NOTICE),
            NOTICE,
            "unknown",
            1,
            0,
        ),
        (
            [row(HOLD), row(NOTICE, due_at=MIDNIGHT + timedelta(hours=1))],
            mails(NOTICE),
            NOTICE,
            "due 2026-12-01T01:00:00Z",
            0,
            0,
        ),
        ([row(HOLD), row(NOTICE)], mails(NOTICE, HOLD), HOLD, "received 1x", 0, 0),
        ([row(HOLD, reason="late"), row(NOTICE)], mails(NOTICE), HOLD, "done late", 0, 0),
    ],
    ids=[
        "gone",
        "not received",
        "twice",
        "in doubt",
        "another time",
        "a mail too many",
        "reason",
    ],
)
def test_a_wrong_key_is_named_with_what_is_wrong(
    rows: list[dict[str, Any]],
    taken: Counter[str],
    key: Expected,
    got: str,
    lost: int,
    doubled: int,
) -> None:
    verdict = judge([HOLD, NOTICE], rows, taken, SENDER)
    assert [(each.operation_key, each.got) for each in verdict.wrong] == [(key.operation_key, got)]
    assert (verdict.lost, verdict.doubled) == (lost, doubled)


def test_what_nobody_expected_is_wrong_too() -> None:
    other = Expected(expected.SETTLED, "b", "payment_settled:email:night:q:e:v1", "sent")
    stray = {"<stray@drill.invalid>": 1}
    verdict = judge([HOLD], [row(HOLD), row(other)], stray, SENDER)
    assert [(each.operation_key, each.expected) for each in verdict.wrong] == [
        (other.operation_key, "no such key"),
        ("<stray@drill.invalid>", "no such message"),
    ]


def test_what_was_in_doubt_is_told_apart_by_what_the_relay_had_taken() -> None:
    other = Expected(expected.SETTLED, "b", "payment_settled:email:night:q:e:v1", "sent")
    table = in_doubt_as_expected(
        [HOLD, NOTICE, other], [NOTICE.identity, other.identity], mails(NOTICE), SENDER
    )
    assert [(one.group, one.reason, one.attempts) for one in table] == [
        (expected.HOLDS, "", None),
        (expected.DOUBT_FOUND, "looked_up", 1),
        (expected.DOUBT_NOT_FOUND, "", 2),
    ]


# ---- whenever it is run -----------------------------------------------------------------------


def odd_instants() -> list[datetime]:
    """Around changes of clocks that the drill's zones have, midnights and a new year."""
    texts = (
        "2026-03-29T01:20",  # Amsterdam and London jump at 01:00
        "2026-10-25T01:36",  # and are set back at 01:00
        "2026-10-25T00:36",
        "2026-11-01T06:10",  # New York is set back
        "2027-03-14T07:30",  # and jumps
        "2026-04-04T15:10",  # Chatham, Auckland
        "2026-09-26T14:20",
        "2026-10-03T16:25",  # Sydney
        "2027-01-01T00:00",
        "2027-01-01T00:20",
        "2028-02-29T23:59",
        "2026-12-01T04:00",
    )
    starts = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in texts]
    # And a week later: the date before it lies on the other side of the change.
    return starts + [start + timedelta(days=7, seconds=59) for start in starts]


@pytest.mark.parametrize("now", odd_instants(), ids=lambda now: f"{now:%Y-%m-%dT%H:%M}")
def test_each_schedule_came_due_once_while_the_sweep_was_paused(
    now: datetime, tmp_path: Path
) -> None:
    wanted = reminders(now, tmp_path)
    assert len(wanted) == 18
    cases = Counter[str]()
    with zone.zones_of(tmp_path):
        for one in wanted:
            put_at = now - PUT_BEFORE
            found = [
                each
                for each in near(one.rule, now)
                if each.due_at is not None and put_at <= each.due_at <= now + timedelta(days=1)
            ]
            assert [each.due_at for each in found] == [one.due_at]
            assert found[0].intended_local == one.local
            assert found[0].nominal_on == one.local.date()
            assert now - PAUSED_FOR < one.due_at < now - timedelta(minutes=2)
            cases[found[0].case] += 1
    assert cases["gap"] == 4


def near(rule: Rule, now: datetime) -> list[Occurrence]:
    """Its dates up to a fortnight from now."""
    found: list[Occurrence] = []
    for one in occurrences(rule):
        if one.due_at is not None and one.due_at > now + timedelta(days=14):
            break
        found.append(one)
    return found


def test_the_zone_that_jumps_is_read_alike_by_both_libraries(tmp_path: Path) -> None:
    jumps_at = datetime(2026, 12, 1, 23, 40, tzinfo=UTC)
    with zone.write_zone(tmp_path, jumps_at).open("rb") as file:
        standard = ZoneInfo.from_file(file)
    with zone.zones_of(tmp_path):
        for minutes in range(-90, 200, 7):
            local = (jumps_at + timedelta(minutes=minutes)).replace(tzinfo=None)
            met = resolve(local, zone.NAME, "later", "earlier")
            assert met.instant == local.replace(tzinfo=standard).astimezone(UTC)
            assert met.case == ("gap" if 0 <= minutes < 60 else "exact")
    noon = datetime(2026, 12, 2, 12, tzinfo=UTC)
    after = resolve(noon.replace(tzinfo=None), zone.NAME, "later", "earlier").instant
    assert after == noon, "the pinned zone was not restored"
