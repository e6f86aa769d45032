"""What an API answered, kept in a file: whole answers one after another, or one object a line.

An answer may be one line or many, as `curl` or `jq` leave it; a list at the top is its members.
Numbers are taken as they are written, so that no amount passes through a float. Memory is bounded
by one answer, never by the file. Rows are numbered by their place among the file's money rows,
since an answer holds many of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from duebook.errors import InputError
from duebook.settlements.delimited import (
    BrokenRow,
    DataRow,
    ScannedFile,
    UnknownLayoutError,
    read_lines,
    scan_records,
)

Json = Mapping[str, Any]
LONGEST_ANSWER: Final = 64 << 20
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_KEPT: Final = 4000
"""So much of an answer that can't be read is kept; a whole one may have megabytes."""
_GOES_ON: Final = ("{", "[", ",", ":")


@dataclass(frozen=True, slots=True)
class Answer:
    """One JSON value of a file and the line on which it begins; no `value`: it is no object."""

    line_no: int
    text: str
    value: Json | None


def scan_answers(
    path: Path,
    what: str,
    fields: tuple[str, ...],
    is_ours: Callable[[Json], bool],
    read: Callable[[ScannedFile], Iterator[DataRow | BrokenRow]],
) -> ScannedFile:
    """Look at a file once; `is_ours` tells by the first object whether it is of this provider.

    Raises UnknownLayoutError when it is not, InputError when it can't be read as a whole.
    """
    file = scan_records(path, what, fields, _is_json, read)
    first = next(read_answers(file, what), None)
    if first is None or first.value is None or not is_ours(first.value):
        line_no = 1 if first is None else first.line_no
        raise UnknownLayoutError(f"{path.name}, line {line_no}: another JSON; expected {what}")
    return file


def _is_json(cells: Sequence[str]) -> bool:
    return bool(cells) and cells[0].lstrip()[:1] in ("{", "[")


def read_answers(file: ScannedFile, what: str) -> Iterator[Answer]:
    """Every object of the file in its order; text that is none comes without a value."""
    for line_no, text in _texts(file, what):
        try:
            # Amounts stay the text that was written.
            found = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
        except (ValueError, RecursionError):
            yield Answer(line_no, text, None)
            continue
        for each in found if isinstance(found, list) else [found]:
            yield Answer(line_no, text, each if isinstance(each, dict) else None)


def _texts(file: ScannedFile, what: str) -> Iterator[tuple[int, str]]:
    """The text of each answer, by the balance of its brackets."""
    lines: list[str] = []
    first = depth = size = 0
    for line_no, line in read_lines(file):
        if not lines and not line.strip():
            continue
        if lines and line.startswith("{") and not lines[0].rstrip().endswith(_GOES_ON):
            # The line before was cut off; it must not take this one with it.
            yield first, "\n".join(lines)
            lines, depth, size = [], 0, 0
        if not lines:
            first = line_no
        lines.append(line)
        size += len(line)
        depth += _depth(line)
        if depth <= 0:
            yield first, "\n".join(lines)
            lines, depth, size = [], 0, 0
        elif size > LONGEST_ANSWER:
            raise InputError(
                f"{file.name}, line {first}: one JSON value of over {LONGEST_ANSWER >> 20} MiB; "
                f"expected {what}, page by page or one object a line"
            )
    if lines:
        yield first, "\n".join(lines)


def _depth(line: str) -> int:
    bare = _STRING.sub("", line)
    opened = bare.count("{") + bare.count("[")
    return opened - bare.count("}") - bare.count("]")


def no_answer(number: int, answer: Answer, what: str) -> BrokenRow:
    """The row that stands for an answer which has nothing that is looked for."""
    reason = "no JSON object" if answer.value is None else "another answer"
    return BrokenRow(number, answer.text[:_KEPT], answer.text[:200], reason, what)


def members(answer: Json, name: str) -> list[Json]:
    """The objects under a name: of a list, or the one that stands there alone."""
    found = answer.get(name)
    listed = found if isinstance(found, list) else [found]
    return [each for each in listed if isinstance(each, dict)]


def text_at(value: Any, *path: str) -> str | None:
    """The text at a path, None where there is none or nothing in it."""
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    if value is None or value == "":
        return None
    return storable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def storable(text: str) -> str:
    """JSON may hold a NUL or half a surrogate pair, which PostgreSQL can't keep."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
