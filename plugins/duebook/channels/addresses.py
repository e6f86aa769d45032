"""E-mail addresses: what can stand on an SMTP command line and in a header, or a clean refusal."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import idna

_ATOM: Final = r"A-Za-z0-9!#$%&'*+/=?^_`{|}~\-"
_LOCAL = re.compile(rf"[{_ATOM}.]+", re.ASCII)
_DOT_ATOM = re.compile(rf"[{_ATOM}]+(?:\.[{_ATOM}]+)*", re.ASCII)
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SEPARATORS: Final = frozenset('"(),:;<>@[\\] \t')


class AddressError(Exception):
    """The text is not an address that mail can be sent to; the message never repeats it."""


@dataclass(frozen=True, slots=True)
class Mailbox:
    """One address. `domain` is in its ASCII form (IDNA 2008)."""

    local: str = field(repr=False)
    domain: str = field(repr=False)

    @property
    def needs_smtputf8(self) -> bool:
        """Whether the local part is beyond ASCII, which not every server carries (RFC 6531)."""
        return not self.local.isascii()

    @property
    def spelled(self) -> str:
        """As it stands between < and >; a local part with stray dots is quoted (RFC 5321)."""
        plain = self.needs_smtputf8 or _DOT_ATOM.fullmatch(self.local)
        return f"{self.local}@{self.domain}" if plain else f'"{self.local}"@{self.domain}'


def parse_mailbox(text: str) -> Mailbox:
    """One bare address: no display name, no comment, no quoted local part, no address literal.

    Stray dots in the local part ("a..b@", which some providers hand out) are accepted. Raises
    AddressError.
    """
    if _CONTROL.search(text):
        raise AddressError("address holds a control character")
    local, at, domain = text.strip().rpartition("@")
    if not at or not local or not domain:
        raise AddressError("address is not of the form local@domain")
    _check_local(local)
    ascii_domain = _ascii_domain(domain)
    if len(local.encode()) > 64 or len(local.encode()) + len(ascii_domain) > 253:
        raise AddressError("address is too long")
    return Mailbox(local, ascii_domain)


def _check_local(local: str) -> None:
    if local.isascii():
        if not _LOCAL.fullmatch(local):
            raise AddressError("address has a local part that can't be sent to")
        return
    ordinary = local.isprintable() and not any(
        char in _SEPARATORS or char.isspace() for char in local
    )
    if not ordinary:
        raise AddressError("address has a local part that can't be sent to")


def _ascii_domain(domain: str) -> str:
    if domain.isascii():
        if not _DOMAIN.fullmatch(domain):
            raise AddressError("address has no valid domain")
        return domain.lower()
    try:
        return idna.encode(domain, uts46=True, std3_rules=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        raise AddressError("address has no valid domain") from None
