"""What mails say of mails: reports as real servers write them, and whatever else may arrive."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duebook.channels.base import message_id_for
from duebook.channels.bounces import LARGEST, BounceReport, UnreadableError, read_report

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
ID = message_id_for("acct_1", "payment_settled:email:stripe:pay_1:txn_1:v1", "b@shop.example")

# As Postfix writes it (RFC 3464), shortened; the address is a recipient's and must not come out.
POSTFIX = """\
Return-Path: <>
Date: Mon, 30 Nov 2026 09:00:00 +0000 (UTC)
From: MAILER-DAEMON@relay.example (Mail Delivery System)
Subject: Undelivered Mail Returned to Sender
To: billing@shop.example
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="B0UND"

--B0UND
Content-Description: Notification
Content-Type: text/plain; charset=us-ascii

I'm sorry to have to inform you that your message could not be delivered.

--B0UND
Content-Description: Delivery report
Content-Type: message/delivery-status

Reporting-MTA: dns; relay.example
{envelope}Arrival-Date: Mon, 30 Nov 2026 08:59:58 +0000 (UTC)

Final-Recipient: rfc822; jane@example.org
Original-Recipient: rfc822;jane@example.org
Action: {action}
Status: {status}
Remote-MTA: dns; mx.example.org
Diagnostic-Code: smtp; 550 {status} <jane@example.org>: no such user

--B0UND
Content-Type: {returned_as}

Message-ID: {message_id}
To: jane@example.org
Subject: We have received your payment

--B0UND--
"""

ARF = """\
From: <abuse@mailbox.example>
Date: Mon, 30 Nov 2026 10:00:00 +0100
To: <abuse@shop.example>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="part1"

--part1
Content-Type: text/plain

This is an email abuse report.

--part1
Content-Type: message/feedback-report

Feedback-Type: {kind}
User-Agent: SomeGenerator/1.0
Version: 1
Original-Rcpt-To: <jane@example.org>

--part1
Content-Type: message/rfc822

From: <billing@shop.example>
To: <jane@example.org>
Message-ID: {message_id}

text
--part1--
"""


def bounce(
    action: str = "failed",
    status: str = "5.1.1",
    envelope: str = "",
    message_id: str = ID,
    returned_as: str = "text/rfc822-headers",
) -> bytes:
    text = POSTFIX.format(
        action=action,
        status=status,
        envelope=envelope,
        message_id=message_id,
        returned_as=returned_as,
    )
    return text.replace("\n", "\r\n").encode()


def complaint(kind: str = "abuse", message_id: str = ID) -> bytes:
    return ARF.format(kind=kind, message_id=message_id).encode()


@pytest.mark.parametrize(
    ("action", "status", "expected"),
    [
        ("failed", "5.1.1", ("failed", "5.1.1", "5.1.1")),
        ("failed", "5.2.1", ("failed", "5.2.1", "5.2.1")),
        ("failed", "5.1.10", ("failed", "5.1.10", "5.1.10")),
        ("failed", "5.2.2", ("failed", "5.2.2", None)),
        ("failed", "5.7.1", ("failed", "5.7.1", None)),
        # Given up after days: nothing is wrong with the address for ever.
        ("failed", "4.4.7", ("failed", "4.4.7", None)),
        ("delayed", "4.4.1", ("delayed", "4.4.1", None)),
        # The status decides, whatever the action calls it.
        ("delayed", "5.4.4", ("failed", "5.4.4", None)),
        ("delayed", "5.1.1", ("failed", "5.1.1", "5.1.1")),
        ("delivered", "2.0.0", ("delivered", "2.0.0", None)),
        ("FAILED", "5.1.1 (bad destination)", ("failed", "5.1.1", "5.1.1")),
    ],
)
def test_the_enhanced_status_decides(
    action: str, status: str, expected: tuple[str, str, str | None]
) -> None:
    (report,) = read_report(bounce(action, status), NOW)
    assert (report.status, report.code, report.suppression) == expected
    assert report.message_id == ID
    assert report.reported_at == datetime(2026, 11, 30, 9, tzinfo=UTC)
    assert "jane" not in repr(report)


@pytest.mark.parametrize(
    "returned_as", ["text/rfc822-headers", "message/rfc822", "message/rfc822-headers"]
)
def test_the_mail_is_known_by_what_is_returned(returned_as: str) -> None:
    assert [each.message_id for each in read_report(bounce(returned_as=returned_as), NOW)] == [ID]


def test_the_mail_is_known_by_its_envelope_where_nothing_is_returned() -> None:
    envelope = f"Original-Envelope-Id: {ID.strip('<>')}\n"
    (report,) = read_report(bounce(envelope=envelope, message_id="<else@where.example>"), NOW)
    assert report.message_id == ID


@pytest.mark.parametrize("kind", ["abuse", "fraud", "opt-out", "Abuse"])
def test_a_complaint_is_one_of_the_recipient(kind: str) -> None:
    at = datetime(2026, 11, 30, 9, tzinfo=UTC)
    expected = BounceReport(ID, "complained", None, "complaint", at, "arf")
    assert read_report(complaint(kind), NOW) == [expected]


@pytest.mark.parametrize(
    "raw", [complaint("not-spam"), complaint("auth-failure"), bounce("relayed", "2.0.0")]
)
def test_what_tells_of_no_ending_reports_nothing(raw: bytes) -> None:
    assert read_report(raw, NOW) == []


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not a report"),
        (b"Subject: I am away\r\n\r\nuntil Monday", "not a report"),
        (b"x" * (LARGEST + 1), "larger than a report"),
        (bounce(message_id="<some@other.example>"), "names no message of ours"),
        (bounce(message_id=f"{ID} jane@example.org"), "names no message of ours"),
        (complaint(message_id=""), "names no message of ours"),
        (complaint("love-letter"), "feedback of an unknown type"),
        (bounce(action="", status="5.1.1"), "a delivery report without action and status"),
        (bounce().replace(b"message/delivery-status", b"text/plain"), "not a report"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_used_is_said_without_its_content(raw: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError) as error:
        read_report(raw, NOW)
    assert str(error.value) == reason


def test_a_date_of_the_future_or_none_is_now() -> None:
    for date in (b"Date: Mon, 30 Nov 2099 09:00:00 +0000", b"Date: soon", b"X-Nothing: here"):
        raw = bounce().replace(b"Date: Mon, 30 Nov 2026 09:00:00 +0000 (UTC)", date, 1)
        assert read_report(raw, NOW)[0].reported_at == NOW


def test_a_mail_nested_without_end_is_unreadable() -> None:
    nested = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n)
        for n in range(3000)
    )
    with pytest.raises(UnreadableError):
        read_report(nested, NOW)


@given(st.binary(max_size=2000))
def test_no_bytes_do_anything_but_be_unreadable(raw: bytes) -> None:
    with pytest.raises(UnreadableError):
        read_report(raw, NOW)


@given(st.data(), st.sampled_from([bounce(), complaint()]))
def test_a_damaged_report_is_read_or_unreadable(data: st.DataObject, raw: bytes) -> None:
    start = data.draw(st.integers(0, len(raw)))
    length = data.draw(st.integers(0, 60))
    damaged = raw[:start] + data.draw(st.binary(max_size=60)) + raw[start + length :]
    reports, said = [], ""
    try:
        reports = read_report(damaged, NOW)
    except UnreadableError as error:
        said = str(error)
    assert "jane" not in said
    for report in reports:
        assert report.reported_at.tzinfo is not None
        assert report.reported_at <= NOW
        assert "jane" not in repr(report)
