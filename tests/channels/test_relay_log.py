"""What a relay's log says of messages that may or may not have been accepted."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duebook.channels.base import Tried
from duebook.channels.registry import make_look_up
from duebook.channels.relay_log import RelayLog
from duebook.config import ChannelConfig
from duebook.errors import ConfigurationError

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def line(minutes: float, text: str) -> str:
    return f"{at(minutes).isoformat(timespec='microseconds')} mx postfix/{text}\n"


def begun(minutes: float, message: str, queue_id: str = "4F1A2B") -> str:
    return line(minutes, f"cleanup[7]: {queue_id}: message-id=<{message}@shop.example>")


def queued(minutes: float, queue_id: str = "4F1A2B") -> str:
    text = f"qmgr[9]: {queue_id}: from=<billing@shop.example>, size=1024, nrcpt=1 (queue active)"
    return line(minutes, text)


def taken(minutes: float, message: str, queue_id: str = "4F1A2B") -> str:
    return begun(minutes, message, queue_id) + queued(minutes, queue_id)


# Before and after every message of these tests: the log covers them.
START, END = taken(-60, "other", "AAAA"), line(30, "anvil[3]: statistics: max connection rate 1")


def ask(path: Path, *messages: str, first: float = -1, last: float = 2) -> list[str]:
    tried = [Tried(f"<{each}@shop.example>", at(first), at(last)) for each in messages]
    return list(asyncio.run(RelayLog(path).look_up(tried)))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "mail.log"


def test_what_it_queued_was_accepted_and_what_it_never_saw_is_not_known(log: Path) -> None:
    log.write_text(START + taken(0, "one") + END)
    assert ask(log, "one", "two", "one") == ["accepted", "not_known", "accepted"]
    assert ask(log) == []


def test_a_message_that_it_began_to_take_and_never_answered_for_can_not_be_told(log: Path) -> None:
    """cleanup names it as soon as its header has come; the connection may be lost after that."""
    log.write_text(START + begun(0, "one") + END)
    assert ask(log, "one") == ["cannot_tell"]


def test_a_queue_id_that_comes_again_later_is_another_message(log: Path) -> None:
    log.write_text(START + begun(0, "one") + END + queued(90))
    assert ask(log, "one") == ["cannot_tell"]


@pytest.mark.parametrize(
    "text",
    [
        line(0, "cleanup[7]: 4F1A2B: reject: header Message-ID: <one@shop.example> from mx"),
        f"{at(0).isoformat()} mx amavis[2]: Blocked, Message-ID: <one@shop.example>\n",
        line(0, "cleanup[7]: 4F1A2B: message-id=<one@shop.example>x"),
    ],
)
def test_a_line_that_only_quotes_a_message_is_no_acceptance(log: Path, text: str) -> None:
    log.write_text(START + text + queued(0) + END)
    assert ask(log, "one") == ["not_known"]


def test_what_was_accepted_is_said_whatever_the_log_covers(log: Path) -> None:
    log.write_text(taken(0, "one"))
    assert ask(log, "one", "two") == ["accepted", "cannot_tell"]


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("it begins too late", taken(-0.9, "other") + END),
        ("it ended before the message could be tried last", START + line(1.9, "anvil[3]: x")),
        (
            "its last line is nearer than the time that a line may take",
            START + line(2.5, "a[3]: x"),
        ),
        ("it is empty", ""),
        ("it is of another program", START.replace(" postfix/", " exim/") + END),
        ("it names no messages at all", line(-60, "qmgr[9]: x") + END),
        ("its times have no zone", "".join((START, END)).replace("+00:00", "")),
    ],
)
def test_what_the_log_does_not_cover_can_not_be_told(log: Path, why: str, text: str) -> None:
    log.write_text(text)
    assert ask(log, "one") == ["cannot_tell"], why


def test_without_a_log_nothing_can_be_told(log: Path, tmp_path: Path) -> None:
    assert ask(log, "one") == ["cannot_tell"]
    assert ask(tmp_path / "nowhere" / "mail.log", "one") == ["cannot_tell"]
    log.mkdir()
    assert ask(log, "one") == ["cannot_tell"]


def test_each_message_is_asked_about_with_its_own_time(log: Path) -> None:
    """One that is older than the log says nothing about the others."""
    log.write_text(START + END)
    tried = [
        Tried("<old@shop.example>", at(-61), at(-50)),
        Tried("<new@shop.example>", at(0), at(1)),
        Tried("<newest@shop.example>", at(29), at(29.5)),
    ]
    found = asyncio.run(RelayLog(log).look_up(tried))
    assert found == ["cannot_tell", "not_known", "cannot_tell"]


def test_rotated_files_are_read_too_and_cover_time_together(log: Path) -> None:
    log.with_name("mail.log.2.gz").write_bytes(gzip.compress((START + begun(-1, "one")).encode()))
    log.with_name("mail.log.1").write_text(queued(-0.5) + taken(0, "two", "BBBB"))
    log.write_text(END)
    log.with_name("mail.log.old").write_text(taken(0, "three", "CCCC"))
    log.with_name("mail.login.1").write_text(taken(0, "three", "CCCC"))
    assert ask(log, "one", "two", "three") == ["accepted", "accepted", "not_known"]


def test_a_gap_in_rotations_numbers_covers_nothing_across_it(log: Path) -> None:
    log.with_name("mail.log.2").write_text(START)
    log.write_text(taken(1, "other", "DDDD") + END)
    assert ask(log, "one") == ["cannot_tell"]
    log.with_name("mail.log.1").write_text("")
    assert ask(log, "one") == ["not_known"]


@pytest.mark.parametrize(
    "broken", [b"\x1f\x8b no gzip", gzip.compress(b"x" * 9999, mtime=0)[:-9], b""]
)
def test_a_part_that_can_not_be_read_is_a_gap(log: Path, broken: bytes) -> None:
    log.with_name("mail.log.2").write_text(START)
    log.with_name("mail.log.1.gz").write_bytes(broken)
    log.write_text(taken(1, "other", "DDDD") + END)
    # An empty file is a whole gzip file of nothing.
    assert ask(log, "one") == ["not_known" if broken == b"" else "cannot_tell"]


def test_while_rotation_compresses_the_whole_file_counts(log: Path) -> None:
    log.with_name("mail.log.1").write_text(START + taken(0, "one"))
    log.with_name("mail.log.1.gz").write_bytes(gzip.compress(START.encode())[:-9])
    log.write_text(END)
    assert ask(log, "one", "two") == ["accepted", "not_known"]


def test_files_rotated_by_date_are_searched_and_cover_only_each_for_itself(log: Path) -> None:
    """Whether one between two dates is missing can't be seen."""
    log.with_name("mail.log-20261201").write_text(START + taken(0, "one") + line(10, "a[3]: x"))
    log.write_text(END)
    assert ask(log, "one", "two") == ["accepted", "not_known"]
    assert ask(log, "two", first=9, last=20) == ["cannot_tell"]


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_times_of_syslog_are_local_and_in_the_year_nearest_to_the_message(log: Path) -> None:
    log.write_text(
        "Dec 31 23:30:00 mx postfix/cleanup[7]: AA: message-id=<other@shop.example>\n"
        "Jan  1 00:31:00 mx postfix/qmgr[9]: BB: removed\n"
    )
    tried = [
        Tried("<one@shop.example>", *span)
        for span in (
            (
                datetime(2026, 12, 31, 22, 30, tzinfo=UTC),
                datetime(2026, 12, 31, 23, 30, tzinfo=UTC),
            ),
            (
                datetime(2026, 12, 31, 22, 29, tzinfo=UTC),
                datetime(2026, 12, 31, 23, 30, tzinfo=UTC),
            ),
            (
                datetime(2026, 12, 31, 22, 30, tzinfo=UTC),
                datetime(2026, 12, 31, 23, 31, tzinfo=UTC),
            ),
        )
    ]
    found = asyncio.run(RelayLog(log).look_up(tried))
    assert found == ["not_known", "cannot_tell", "cannot_tell"]


@pytest.mark.usefixtures("berlin")
def test_a_time_in_the_hour_that_the_clock_repeats_covers_what_both_meanings_cover(
    log: Path,
) -> None:
    log.write_text(
        "Oct 25 02:30:00 mx postfix/cleanup[7]: AA: message-id=<other@shop.example>\n"
        "Oct 25 05:00:00 mx postfix/qmgr[9]: BB: removed\n"
    )
    two = datetime(2026, 10, 25, 2, tzinfo=UTC)
    tried = [
        Tried("<one@shop.example>", datetime(2026, 10, 25, 1, minute, tzinfo=UTC), two)
        for minute in (15, 45)
    ]
    assert asyncio.run(RelayLog(log).look_up(tried)) == ["cannot_tell", "not_known"]


def test_a_block_without_a_relay_log_has_nobody_to_ask(log: Path) -> None:
    assert make_look_up(ChannelConfig()) is None
    assert make_look_up(ChannelConfig(relay_log=log)) == RelayLog(log)


def test_it_says_of_which_time_it_can_tell_or_what_is_wrong_with_it(log: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        RelayLog(log).verify()
    log.write_text(END)
    with pytest.raises(ConfigurationError, match="names no message that Postfix took"):
        RelayLog(log).verify()
    log.with_name("mail.log.1").write_text(START)
    assert RelayLog(log).verify() == f"{log} tells of 2026-12-01 11:00Z to 2026-12-01 12:30Z"
