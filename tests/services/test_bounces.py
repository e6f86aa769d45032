"""`duebook bounces read`: from a Maildir to suppressed addresses, once however often it is read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.channels.test_bounces import bounce, complaint
from tests.conftest import DuebookCli
from tests.due_work import add_due, value
from tests.services.test_incident import CONFIG
from tests.services.test_mail import mailing, sweep_mail
from tests.smtp_sink import SmtpSink

Conn = psycopg.Connection[Any]


@pytest.fixture
def sent(conn: Conn, database_url: str) -> list[str]:
    """Message-IDs of four mails that a server took, by account."""
    with mailing(conn, database_url, 4, SmtpSink()) as run:
        run()
    rows = conn.execute("select provider_message_id from duebook.outcome order by account_id")
    return [row[0] for row in rows]


@pytest.fixture
def maildir(tmp_path: Path) -> Path:
    for folder in ("new", "cur", "tmp"):
        (tmp_path / "bounces" / folder).mkdir(parents=True)
    return tmp_path / "bounces"


@pytest.fixture
def cli(duebook_cli: DuebookCli, tmp_path: Path) -> DuebookCli:
    (tmp_path / "duebook.toml").write_text(
        CONFIG + '\n[channels.email]\nconnection = "smtp"\nsender = "Shop <billing@shop.example>"\n'
    )
    return duebook_cli


def suppressed(conn: Conn) -> list[tuple[str, str, str]]:
    return conn.execute(
        "select account_id, reason, source from duebook.suppression order by 1"
    ).fetchall()


def test_a_maildir_is_read_once_and_its_reports_are_kept_once(
    conn: Conn, cli: DuebookCli, sent: list[str], maildir: Path
) -> None:
    assert all(each.startswith("<") for each in sent)
    mails = {
        "1.gone": bounce("failed", "5.1.1", message_id=sent[0]),
        "2.spam": complaint(message_id=sent[1]),
        "3.slow": bounce("delayed", "4.4.1", message_id=sent[2]),
        "4.full": bounce("failed", "5.2.2", message_id=sent[3]),
        "5.away": b"Subject: I am away, write to jane@example.org\r\n\r\n",
        "6.other": complaint("not-spam", message_id=sent[3]),
    }
    for name, raw in mails.items():
        (maildir / "new" / name).write_bytes(raw)
    again = maildir.with_name("again")
    shutil.copytree(maildir, again)

    first = cli.in_process("bounces", "read", "--json", maildir)
    assert first.code == 1
    assert first.json == {
        "read": 6,
        "recorded": 4,
        "known": 0,
        "ignored": 1,
        "quarantined": [{"file": "5.away", "reason": "not a report"}],
    }
    expected = [("a000000", "5.1.1", "provider"), ("a000001", "complaint", "recipient")]
    assert suppressed(conn) == expected
    assert value(conn, "select count(*) from duebook.delivery_report") == 4

    seen = cli.in_process("bounces", "read", "--json", maildir)
    assert (seen.code, seen.json["read"]) == (0, 0)
    assert len(list((maildir / "cur").iterdir())) == 6

    repeated = cli.in_process("bounces", "read", "--json", again).json
    assert (repeated["recorded"], repeated["known"]) == (0, 4)
    assert suppressed(conn) == expected
    kept = Path(cli.environment["DUEBOOK_HOME"]) / "quarantine" / "bounces"
    names = sorted(each.suffix for each in kept.iterdir())
    assert names == [".eml", ".reason"]
    assert next(kept.glob("*.eml")).read_bytes() == mails["5.away"]
    assert next(kept.glob("*.eml")).stat().st_mode & 0o077 == 0
    assert "jane" not in first.stdout + first.stderr


def test_who_complained_is_told_nothing_more_and_has_not_opted_out(
    conn: Conn, database_url: str, cli: DuebookCli, sent: list[str], tmp_path: Path
) -> None:
    mail = tmp_path / "mail.eml"
    mail.write_bytes(complaint(message_id=sent[1]))
    assert cli.in_process("bounces", "read", mail).code == 0
    add_due(conn, 4, accounts=4, channel="email", kind="payment_refunded", payments_from=20)
    with SmtpSink() as sink:
        sweep_mail(database_url, sink)
    assert len(sink.messages) == 3
    ended = "select account_id, reason from duebook.outcome where result = 'expired'"
    assert conn.execute(ended).fetchall() == [("a000001", "suppressed")]


def test_one_mail_from_a_file(conn: Conn, cli: DuebookCli, sent: list[str], tmp_path: Path) -> None:
    mail = tmp_path / "mail.eml"
    mail.write_bytes(bounce("failed", "5.1.1", message_id=sent[2]))
    done = cli.in_process("bounces", "read", mail)
    assert (done.code, mail.exists()) == (0, True)
    assert "1 reports recorded" in done.stdout
    assert suppressed(conn) == [("a000002", "5.1.1", "provider")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((".",), "no Maildir"),
        ((".", "--channel", "email_other"), "duebook.toml has no [channels.email_other]"),
    ],
)
def test_what_is_not_there_is_named(cli: DuebookCli, arguments: tuple[str, ...], said: str) -> None:
    done = cli.in_process("bounces", "read", *arguments)
    assert done.code == 2
    assert said in done.stderr + done.stdout


def test_a_link_in_the_maildir_is_not_followed(
    conn: Conn, cli: DuebookCli, sent: list[str], maildir: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bounce("failed", "5.1.1", message_id=sent[0]))
    (maildir / "new" / "1").symlink_to(secret)
    assert cli.in_process("bounces", "read", "--json", maildir).json["read"] == 0
    assert suppressed(conn) == []
