"""Notices: what a customer reads, and what a template that fails says."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from duebook.channels.render import KINDS, Renderer, RenderError, render

FACTS: dict[str, Any] = {
    "account_id": "acct_1",
    "payment_id": "pay_1",
    "reference": "R-1001",
    "amount_minor": 123450,
    "expected_minor": 123450,
    "currency": "EUR",
    "status_before": "pending",
    "status_after": "settled",
    "occurred_on": date(2026, 11, 3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_shipped_kind_reads_whole(kind: str) -> None:
    subject, text, html = render(kind, FACTS)
    assert "R-1001" in subject
    assert "\n" not in subject
    assert len(subject) <= 78
    assert "EUR 1,234.50" in text
    assert "R-1001" in text
    assert html is None
    assert text.startswith("Hello,")
    assert text.endswith("\n")
    for leftover in ("{", "}", "None", "pay_1", "acct_1"):
        assert leftover not in subject + text


def test_a_settled_payment_names_the_day() -> None:
    assert "of EUR 1,234.50 on 3 November 2026" in render("payment_settled", FACTS).text


def test_a_part_payment_names_both_amounts() -> None:
    subject, text, _ = render("payment_settled", FACTS | {"amount_minor": 50000})
    assert subject == "We have received part of your payment R-1001"
    assert "EUR 500.00 of EUR 1,234.50" in text


def test_the_whole_amount_need_not_be_known() -> None:
    assert render("payment_settled", FACTS | {"expected_minor": None}).subject.startswith(
        "We have received your payment"
    )


def test_money_follows_the_currency_and_the_provider() -> None:
    yen = FACTS | {"amount_minor": 1500, "currency": "JPY", "expected_minor": None}
    assert "JPY 1,500 " in render("payment_settled", yen).text
    krona = yen | {"amount_minor": 10000, "currency": "ISK", "exponent": 2}
    assert "ISK 100 " in render("payment_settled", krona).text


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reference": None}, "reference"),
        ({"amount_minor": None}, "amount"),
        ({"occurred_on": None}, "occurred_on"),
        ({"currency": None}, "currency"),
        ({"currency": "ZZZ"}, "currency"),
        ({"amount_minor": 12.5}, "amount_minor"),
        ({"amount_minor": "12"}, "amount_minor"),
        ({"exponent": 9}, "exponent"),
        ({"reference": object()}, "reference"),
        ({"reference": 1.5}, "reference"),
    ],
)
def test_a_fact_that_is_missing_or_wrong_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RenderError) as error:
        render("payment_settled", FACTS | changes)
    assert (error.value.kind, error.value.field) == ("payment_settled", field)
    assert "1234" not in str(error.value)


@pytest.mark.parametrize("kind", ["unknown", "../../etc/passwd", "", "payment_settled.text"])
def test_an_unknown_kind_is_an_error(kind: str) -> None:
    with pytest.raises(RenderError):
        render(kind, FACTS)


def own(folder: Path, **parts: str) -> Renderer:
    for part in ("subject", "text"):
        parts.setdefault(part, "x")
    for part, template in parts.items():
        (folder / f"own.{part}.jinja2").write_text(template, encoding="utf-8")
    return Renderer(folder)


def test_html_is_escaped_and_text_is_not(tmp_path: Path) -> None:
    renderer = own(tmp_path, text="{{ reference }}", html="<p>{{ reference }}</p>")
    rendered = renderer.render("own", {"reference": "<b>&"})
    assert rendered.text == "<b>&\n"
    assert rendered.html == "<p>&lt;b&gt;&amp;</p>"


def test_a_fact_can_not_break_a_line(tmp_path: Path) -> None:
    renderer = own(tmp_path, subject="Re {{ reference }}", text="{{ reference }}")
    rendered = renderer.render("own", {"reference": "a\r\nBcc: b\n\nc"})
    assert rendered.subject == "Re a Bcc: b c"
    assert rendered.text == "a Bcc: b c\n"


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ reference.__init__.__globals__ }}",
        "{% for i in range(10**9) %}x{% endfor %}",
        "{{ 1 / 0 }}",
        "{{ nope() }}",
        "{% if %}",
        "{% include 'nothing.jinja2' %}",
    ],
)
def test_a_template_that_misbehaves_is_held_by_name(tmp_path: Path, template: str) -> None:
    renderer = own(tmp_path, text=template)
    with pytest.raises(RenderError) as error:
        renderer.render("own", {"reference": "secret-reference"})
    assert error.value.kind == "own"
    assert "secret-reference" not in str(error.value)
    assert error.value.__cause__ is None


def test_an_empty_subject_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RenderError):
        own(tmp_path, subject=" \n ").render("own", {})


def test_a_reminder_says_what_its_schedule_says() -> None:
    facts = {"occurs_on": date(2027, 2, 1), "occurs_at": "09:00", "zone": "Europe/Berlin"}
    subject, text, _ = render("reminder", facts)
    assert subject == "Reminder for 1 February 2027"
    assert "your reminder for 1 February 2027, 09:00." in text
    told = {"title": "Rent is due", "text": "Please pay by the third."}
    subject, text, _ = render("reminder", facts | told)
    assert subject == "Rent is due"
    assert text == "Hello,\n\nPlease pay by the third.\n"
