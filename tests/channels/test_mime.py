"""What the byte template writes is what the standard library's parser reads."""

from __future__ import annotations

import email
import email.policy
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duebook.channels.addresses import AddressError, parse_mailbox
from duebook.channels.base import Message, message_id_for
from duebook.channels.mime import MessageError, MessageWriter

DATE = "Mon, 30 Nov 2026 12:00:00 GMT"
SENDER = 'Shop "Süd", Inc. <billing@shop.example>'
ID = message_id_for("acct_1", "remind:email:s:2026-11-01", "billing@shop.example")

texts = st.text(
    alphabet=st.one_of(st.sampled_from(".\r\n \t=-_ü"), st.characters(exclude_categories=["Cs"])),
    max_size=400,
)
# Headers are compared after the parser's own folding of white space.
subjects = st.text(
    alphabet=st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs")), max_size=120
).map(lambda subject: re.sub(r"\s+", "", subject))


def write(subject: str = "s", text: str = "t", html: str | None = None) -> bytes:
    message = Message("k", ID, "a@example.org", subject, text, html)
    return MessageWriter(SENDER).write(message, DATE).data


def lines(text: str) -> list[str]:
    return re.split("\r\n|\r|\n", text.rstrip("\r\n"))


def parse(data: bytes) -> email.message.EmailMessage:
    parsed = email.message_from_bytes(data, policy=email.policy.default)
    assert isinstance(parsed, email.message.EmailMessage)
    return parsed


@given(subjects, texts)
def test_a_plain_message_reads_back(subject: str, text: str) -> None:
    parsed = parse(write(subject, text))
    assert parsed["Subject"] == subject
    assert lines(parsed.get_content()) == lines(text)


@given(texts, texts)
def test_both_parts_of_an_alternative_read_back(text: str, html: str) -> None:
    parsed = parse(write("s", text, html))
    plain, rich = parsed.iter_parts()
    assert (plain.get_content_type(), rich.get_content_type()) == ("text/plain", "text/html")
    assert lines(plain.get_content()) == lines(text)
    assert lines(rich.get_content()) == lines(html)


@given(subjects, texts, st.one_of(st.none(), texts))
def test_no_line_end_can_be_mistaken_and_no_line_is_too_long(
    subject: str, text: str, html: str | None
) -> None:
    data = write(subject, text, html)
    assert data.endswith(b"\r\n")
    assert not re.search(rb"\r(?!\n)|(?<!\r)\n", data)
    assert all(len(line) <= 998 for line in data.split(b"\r\n"))
    assert b"\0" not in data
    assert data.isascii()


words = st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Zs"]), min_size=1)


@given(st.lists(words.filter(lambda word: "=?" not in word), min_size=1, max_size=40))
def test_a_long_header_is_folded_at_its_blanks_and_reads_back(parts: list[str]) -> None:
    value = ", ".join(parts)
    message = Message("k", ID, "a@example.org", "s", "t", headers={"X-Ref": value})
    data = MessageWriter(SENDER).write(message, DATE).data
    parsed = email.message_from_bytes(data, policy=email.policy.compat32)
    assert parsed["X-Ref"].replace("\r\n", "") == value
    assert list(parsed.keys()).count("X-Ref") == 1
    assert "X-Ref: " in data.decode()
    for line in data.partition(b"\r\n\r\n")[0].split(b"\r\n"):
        assert line.strip()
        assert len(line) <= 78 or b" " not in line.strip().removeprefix(b"X-Ref: ")


def test_a_word_longer_than_a_line_may_be_is_refused() -> None:
    message = Message("k", ID, "a@example.org", "s", "t", headers={"X-Ref": "x" * 1000})
    with pytest.raises(MessageError, match="x-ref is too long"):
        MessageWriter(SENDER).write(message, DATE)


def test_headers_are_those_of_the_sender_and_the_key() -> None:
    parsed = parse(write("Grüße", "text"))
    assert parsed["From"].addresses[0].display_name == 'Shop "Süd", Inc.'
    assert parsed["From"].addresses[0].addr_spec == "billing@shop.example"
    assert parsed["To"].addresses[0].addr_spec == "a@example.org"
    assert parsed["Message-ID"] == ID
    assert parsed["Auto-Submitted"] == "auto-generated"
    assert parsed.defects == []
    assert len(parsed.keys()) == len({name.lower() for name in parsed.keys()})  # noqa: SIM118


@pytest.mark.parametrize(
    ("sender", "name"),
    [
        ("billing@shop.example", ""),
        ("<billing@shop.example>", ""),
        ("Shop, Inc. <billing@shop.example>", "Shop, Inc."),
        ('"Shop \\"Süd\\"" <billing@shop.example>', 'Shop "Süd"'),
        ("Größe 用户 <billing@shop.example>", "Größe 用户"),
    ],
)
def test_a_sender_is_written_as_people_write_them(sender: str, name: str) -> None:
    message = Message("k", ID, "a@example.org", "s", "t")
    (shown,) = parse(MessageWriter(sender).write(message, DATE).data)["From"].addresses
    assert (shown.display_name, shown.addr_spec) == (name, "billing@shop.example")


def test_a_word_that_looks_encoded_is_shown_as_written() -> None:
    assert parse(write("=?utf-8?q?hi?="))["Subject"] == "=?utf-8?q?hi?="


def test_plain_text_stays_plain() -> None:
    data = write("Your payment R-1", "Hello,\n\nthank you.\n")
    assert b"Subject: Your payment R-1\r\n" in data
    assert data.endswith(b"\r\n\r\nHello,\r\n\r\nthank you.\r\n\r\n")


@given(st.text(max_size=40))
def test_any_recipient_is_written_cleanly_or_refused(recipient: str) -> None:
    message = Message("k", ID, recipient, "s", "t")
    try:
        envelope = MessageWriter(SENDER).write(message, DATE)
    except MessageError:
        return
    spelled = envelope.recipient.spelled
    assert not re.search(r"[\s<>,]", spelled)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("A.b+c@Example.ORG", "A.b+c@example.org"),
        (" a@example.org ", "a@example.org"),
        ("a@localhost", "a@localhost"),
        ("o'neil@example.org", "o'neil@example.org"),
        ("kunde@faß.example", "kunde@xn--fa-hia.example"),
        ("a..b@docomo.example", '"a..b"@docomo.example'),
        ("用户@例子.example", "用户@xn--fsqu00a.example"),
    ],
)
def test_addresses_are_spelled_for_the_wire(text: str, spelled: str) -> None:
    assert parse_mailbox(text).spelled == spelled


@pytest.mark.parametrize(
    "text", ['"quoted local"@example.org', "a@[127.0.0.1]", "a@b@c.example", "a b@example.org"]
)
def test_addresses_beyond_the_plain_ones_are_refused(text: str) -> None:
    with pytest.raises(AddressError) as error:
        parse_mailbox(text)
    assert "example" not in str(error.value)
