"""Notices as text: one template a kind and part, filled with checked facts.

Money becomes text only here, and only as facts of a message. A template that fails names its kind
and the field, so that the gate can hold the intent; neither error nor log holds a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

import jinja2
import jinja2.sandbox

from duebook.domain.money import UnknownCurrencyError, format_money
from duebook.errors import DuebookError

KINDS: Final = (
    "payment_settled",
    "payment_refunded",
    "payment_disputed",
    "payment_missing",
    "payment_cleared",
    "hold_refund",
)
Form = Literal["mail", "sms"]
TEMPLATES: Final = Path(__file__).parent / "templates"

_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_UNDEFINED = re.compile(r"'(?P<field>[A-Za-z_][A-Za-z0-9_]*)' is undefined")
_KIND = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)


class RenderError(DuebookError):
    """A notice could not be written from its facts."""

    def __init__(self, kind: str, field: str, reason: str) -> None:
        super().__init__(f"template {kind}: {field}: {reason}")
        self.kind = kind
        self.field = field


class Rendered(NamedTuple):
    """One notice; `html` is None where the kind has no such template."""

    subject: str
    text: str
    html: str | None


class Renderer:
    """Templates of one folder: <kind>.subject.jinja2, .text.jinja2 and, if wanted, .html.jinja2.

    Sandboxed, since merchants bring their own; an absent fact is an error and never an empty
    string; HTML is escaped.
    """

    def __init__(self, folder: Path = TEMPLATES) -> None:
        self._environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            loader=jinja2.FileSystemLoader(folder),
            undefined=jinja2.StrictUndefined,
            autoescape=lambda name: name is not None and name.endswith(".html.jinja2"),
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._found: dict[str, jinja2.Template | None] = {}

    def render(self, kind: str, facts: Mapping[str, object], form: Form = "mail") -> Rendered:
        """The notice of `kind` from `facts`; raises RenderError.

        As `sms` its text is the short one, where the kind has such a template.

        Facts of the shipped kinds: account_id, payment_id, reference (text), amount_minor (int),
        currency, occurred_on (date), and, where known, expected_minor (int), status_before,
        status_after and exponent (of amount_minor, by default ISO's). Every <name>_minor is seen by
        the template as <name>, formatted; None counts as absent.
        """
        if not _KIND.fullmatch(kind):
            raise RenderError("?", "kind", "not the name of a kind")
        shown = _shown_facts(kind, facts)
        subject = " ".join(self._part(kind, "subject", shown).split())
        if not subject:
            raise RenderError(kind, "subject", "is empty")
        text = self._part(kind, self._text_part(kind, form), shown).strip() + "\n"
        has_html = form == "mail" and self._has(kind, "html")
        return Rendered(subject, text, self._part(kind, "html", shown) if has_html else None)

    def render_digest(self, notices: Sequence[Rendered], form: Form = "mail") -> Rendered:
        """Several notices in one message, from what each says: `notices`, and their `count`."""
        facts = {"notices": notices, "count": len(notices)}
        subject = " ".join(self._part("digest", "subject", facts).split())
        text = self._part("digest", self._text_part("digest", form), facts).strip() + "\n"
        return Rendered(subject, text, None)

    def _text_part(self, kind: str, form: Form) -> str:
        return "sms" if form == "sms" and self._has(kind, "sms") else "text"

    def _has(self, kind: str, part: str) -> bool:
        try:
            return self._find(kind, part) is not None
        except jinja2.TemplateError:
            return True

    def _find(self, kind: str, part: str) -> jinja2.Template | None:
        """The template, None where there is none; Jinja itself looks again for one that is not."""
        name = f"{kind}.{part}.jinja2"
        if name not in self._found:
            try:
                self._found[name] = self._environment.get_template(name)
            except jinja2.TemplateNotFound:
                self._found[name] = None
        return self._found[name]

    def _part(self, kind: str, part: str, facts: Mapping[str, object]) -> str:
        try:
            template = self._find(kind, part)
            if template is None:
                raise RenderError(kind, part, "there is no such template")
            # What render() does, without walking over its layers of globals name by name.
            seen = {**self._environment.globals, **facts}
            return "".join(template.root_render_func(template.new_context(seen, shared=True)))
        except RenderError:
            raise
        except jinja2.UndefinedError as error:
            found = _UNDEFINED.search(str(error))
            field = found["field"] if found else part
            raise RenderError(kind, field, f"is missing ({part})") from None
        except jinja2.TemplateSyntaxError as error:
            raise RenderError(kind, part, f"line {error.lineno} is not valid") from None
        except Exception as error:  # a template can raise anything, with a value in its text
            raise RenderError(kind, part, f"failed with {type(error).__name__}") from None


@cache
def _shipped() -> Renderer:
    return Renderer()


def render(kind: str, facts: Mapping[str, object], form: Form = "mail") -> Rendered:
    """The notice of `kind` by the shipped templates; see Renderer.render()."""
    return _shipped().render(kind, facts, form)


def render_digest(notices: Sequence[Rendered], form: Form = "mail") -> Rendered:
    """Several notices of one account in one message, in their order; raises RenderError."""
    return _shipped().render_digest(notices, form)


def _shown_facts(kind: str, facts: Mapping[str, object]) -> dict[str, str]:
    shown = {}
    for name, value in facts.items():
        if value is None or name == "exponent":
            continue
        if name.endswith("_minor"):
            shown[name.removesuffix("_minor")] = _money(kind, name, value, facts)
        elif isinstance(value, date):
            shown[name] = f"{value.day} {_MONTHS[value.month - 1]} {value.year}"
        elif isinstance(value, str):
            shown[name] = " ".join(value.split())
        elif isinstance(value, int) and not isinstance(value, bool):
            shown[name] = str(value)
        else:
            raise RenderError(kind, name, f"{type(value).__name__} can't be shown")
    return shown


def _money(kind: str, name: str, value: object, facts: Mapping[str, object]) -> str:
    currency, digits = facts.get("currency"), facts.get("exponent")
    if not isinstance(value, int) or isinstance(value, bool):
        raise RenderError(kind, name, "not whole minor units")
    if digits is not None and (not isinstance(digits, int) or not 0 <= digits <= 4):
        raise RenderError(kind, "exponent", "not between 0 and 4")
    try:
        return format_money(value, currency if isinstance(currency, str) else "", digits)
    except UnknownCurrencyError:
        raise RenderError(kind, "currency", "is missing or not an ISO 4217 code") from None
