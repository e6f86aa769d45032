"""What an SMTP reply means for a message: taken, later, or refused.

Decided by the reply code and the enhanced status (RFC 3463) together: permanent only when both say
so. A refusal of us (our login, our sender, our place on a list) is not a refusal of the recipient:
it must not end thousands of promises, so it is `later` and the channel rests until a person acts.
No word of the server's text is passed on, since servers like to repeat the address.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from duebook.channels.base import SendResult, SendScope

Stage = Literal["greeting", "login", "sender", "recipient", "data", "message"]

_ENHANCED = re.compile(r"([245])\.([0-9]{1,3})\.([0-9]{1,3})(?![0-9.])", re.ASCII)
# About the address or a closed mailbox, and permanent.
_ADDRESS_IS_DEAD: Final = re.compile(r"5\.(1\.(0|1|2|3|6|10)|2\.1)")
# 503 bad sequence; 530, 534, 535, 538 about our login (RFC 4954).
_OURS: Final = frozenset({503, 530, 534, 535, 538})
_MESSAGE_TOO_LARGE: Final = 552
_CLOSING: Final = 421
_MAILBOX_BUSY: Final = 450
_GREYLISTED: Final = frozenset({450, 451})
_SUBJECTS: Final = {
    "1": "address refused",
    "2": "mailbox refused",
    "3": "mail system refused",
    "4": "routing failed",
    "5": "protocol refused",
    "6": "content refused",
    "7": "policy refused",
}


def judge_reply(stage: Stage, code: int, text: str) -> SendResult:
    """The result of a reply that is not the one hoped for at its stage, or of the final one."""
    enhanced = _ENHANCED.match(text)
    shown = f"{code} {enhanced.group()}" if enhanced else str(code)
    if stage == "message" and 200 <= code < 300:
        return SendResult("accepted", code=shown)
    if 400 <= code < 500:
        phrase = "server is closing" if code == _CLOSING else "server is busy or asks to wait"
        scope = _scope(stage, code, enhanced)
        return SendResult("later", code=shown, detail=f"{phrase} ({stage})", scope=scope)
    if not 500 <= code < 600:
        # After the message an odd reply may well mean that it was taken.
        status: Literal["unknown", "later"] = "unknown" if stage == "message" else "later"
        return SendResult(status, code=shown, detail=f"unexpected reply ({stage})")
    if enhanced and enhanced.group(1) == "4":
        scope = _scope(stage, code, enhanced)
        detail = f"temporary by its status ({stage})"
        return SendResult("later", code=shown, detail=detail, scope=scope)
    if _is_about_us(stage, code, enhanced):
        return SendResult("later", code=shown, detail=f"server refuses us ({stage})")
    phrase = _SUBJECTS.get(enhanced.group(2), "refused") if enhanced else "refused"
    is_dead = enhanced is not None and is_address_dead(enhanced.group())
    return SendResult(
        "refused",
        code=shown,
        detail=f"{phrase} ({stage})",
        suppress=shown if is_dead else None,
    )


def is_address_dead(status: str) -> bool:
    """Whether an enhanced status says that the address itself will never work.

    Not 5.4.4, no such host: a relay whose own DNS is wrong says it of everybody.
    """
    return _ADDRESS_IS_DEAD.fullmatch(status) is not None


def _scope(stage: Stage, code: int, enhanced: re.Match[str] | None) -> SendScope:
    if stage not in ("recipient", "message") or code == _CLOSING:
        return "channel"
    if enhanced is None:
        # 450 after RCPT is this mailbox by definition; after the text it may be anything.
        return "message" if stage == "recipient" and code == _MAILBOX_BUSY else "channel"
    subject, detail = enhanced.group(2), enhanced.group(3)
    if subject in ("1", "2", "6"):
        return "message"
    # Grey-listing answers RCPT so; other codes (454) and policies (4.7.28) are about the sender.
    is_greylisted = code in _GREYLISTED and subject == "7" and detail in ("0", "1")
    return "message" if stage == "recipient" and is_greylisted else "channel"


def _is_about_us(stage: Stage, code: int, enhanced: re.Match[str] | None) -> bool:
    if stage in ("greeting", "login") or code in _OURS:
        return True
    if stage != "sender":
        return False
    # At MAIL only the size and the content's encoding are the message's own fault.
    about_message = code == _MESSAGE_TOO_LARGE or (
        enhanced is not None and (enhanced.group(2), enhanced.group(3)) in {("3", "4"), ("6", "7")}
    )
    return not about_message
