"""How many segments a text takes as SMS: what it costs, and how long it may be.

GSM 03.38 (3GPP TS 23.038 6.2.1): 160 septets, or 153 each in several; a letter of its extension
table takes two. A single letter beyond it makes the whole text UCS-2: 70 units of 16 bits, or 67.
"""

from __future__ import annotations

from typing import Final

_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_EXTENDED: Final = frozenset("^{}\\[~]|€\f")


def count_segments(text: str) -> int:
    """Segments of a text; 0 of an empty one."""
    if all(letter in _BASIC or letter in _EXTENDED for letter in text):
        return _count([2 if letter in _EXTENDED else 1 for letter in text], 160, 153)
    return _count([len(letter.encode("utf-16-le")) // 2 for letter in text], 70, 67)


def _count(sizes: list[int], alone: int, joined: int) -> int:
    if sum(sizes) <= alone:
        return 1 if sizes else 0
    segments, used = 1, 0
    for size in sizes:
        # A letter is never cut in two.
        if used + size > joined:
            segments, used = segments + 1, 0
        used += size
    return segments
