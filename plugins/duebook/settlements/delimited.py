"""Reads delimited files without ever holding one in memory.

A file is looked at once before it is read (`scan_file`): its checksum, whether it is UTF-8, where
its header stands. Then it is read in one of two ways that give the same rows. *Fast*: its bytes go
to the database as they are (`raw_chunks`), for a file in which every physical line is one row of
the header's width. *Tolerant*: row by row (`tolerant_rows`), for anything else; what is no row is
rejected with its line, and the rows after it go on. Line numbers are physical lines of the file.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final

from duebook.errors import InputError
from duebook.settlements.base import FileCheck

CHUNK_BYTES: Final = 1 << 20
HEADER_LINES: Final = 100
LONGEST_LINE: Final = 1 << 20
LONGEST_QUOTED_LINES: Final = 50
_BOM: Final = codecs.BOM_UTF8
_CONTROLS: Final = bytes(set(range(1, 32)) - {10, 13}) + b"\x7f"


class UnknownLayoutError(InputError):
    """A file that can be read, and is not of the layout that was looked for."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns of a file matter: field to header, and which of them must be there.

    Without a header the columns are called by their numbers, from 1.
    """

    what: str
    columns: Mapping[str, str]
    required: frozenset[str]
    delimiter: str = ","
    has_header: bool = True


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """One file as it stood when it was looked at; `fields` names the field of each of its columns.

    `header_line` is the physical line of the header; `lines` counts the physical lines between
    `data_start` and `data_end`, line ends at the end of the file left out. `is_plainly_quoted` is
    False when a quote stands inside an unquoted cell, which readers understand differently.
    `has_controls`: a control character or a lone carriage return stands somewhere. `read` reads a
    file that is not one row a line under one header; `checks` is filled by then with what such a
    file says about itself. `typed` are fields whose values are numbers in the file, not text.
    """

    path: Path
    name: str
    sha256: str
    size: int
    modified_ns: int
    delimiter: str
    header_line: int
    data_start: int
    data_end: int
    lines: int
    is_plainly_quoted: bool
    has_controls: bool
    fields: tuple[str, ...]
    read: Callable[[ScannedFile], Iterator[DataRow | BrokenRow]] | None = None
    typed: frozenset[str] = frozenset()
    checks: list[FileCheck] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class DataRow:
    """Cells of one row, None where a cell is empty."""

    line_no: int
    cells: Sequence[str | None]


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """A row that has not the header's shape."""

    line_no: int
    raw: str
    value: str
    reason: str
    expected: str


@dataclass(slots=True)
class _Content:
    """Finds the first byte that is not UTF-8 or a NUL, and quotes that stand astray."""

    name: str
    stray_quote: re.Pattern[bytes]
    is_plainly_quoted: bool = True
    has_controls: bool = False
    carriage_returns: int = 0
    line_ends: int = 0
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("strict")
    )
    _line: int = 1
    _tail: bytes = b"\n"

    def feed(self, chunk: bytes, final: bool = False) -> None:
        try:
            self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            held = len(error.object) - len(chunk)
            line = self._line + chunk.count(b"\n", 0, max(error.start - held, 0))
            raise _encoding_error(self.name, line) from None
        nul = chunk.find(b"\0")
        if nul >= 0:
            raise _encoding_error(self.name, self._line + chunk.count(b"\n", 0, nul))
        if self.is_plainly_quoted and b'"' in chunk:
            self.is_plainly_quoted = not self.stray_quote.search(self._tail + chunk)
        if not self.has_controls:
            self.has_controls = len(chunk.translate(None, _CONTROLS)) < len(chunk)
        self.carriage_returns += chunk.count(b"\r")
        self.line_ends += chunk.count(b"\r\n") + (self._tail[-1:] + chunk[:1] == b"\r\n")
        self._tail = chunk[-2:]
        self._line += chunk.count(b"\n")


def _encoding_error(name: str, line: int) -> InputError:
    return InputError(f"{name}, line {line}: not UTF-8; expected a UTF-8 text file")


def scan_file(path: Path, layout: Layout) -> ScannedFile:
    """Look at a file once, start to end.

    Raises InputError when it can't be read as a whole: missing, empty, not UTF-8, or without a
    column that is required; nothing of it was applied then.
    """
    name = path.name
    try:
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            content = _Content(name, _stray_quote(layout.delimiter))
            digest, end = _digest(stream, content)
            if end == 0:
                raise InputError(f"{name}: the file is empty; expected {layout.what}")
            stream.seek(0)
            header_line, data_start, fields = _find_header(stream, name, layout)
            data_end = max(end, data_start)
            lines = _count_lines(stream, data_start, data_end)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'not readable'}") from None
    return ScannedFile(
        path=path,
        name=name,
        sha256=digest,
        size=status.st_size,
        modified_ns=status.st_mtime_ns,
        delimiter=layout.delimiter,
        header_line=header_line,
        data_start=data_start,
        data_end=data_end,
        lines=lines,
        is_plainly_quoted=content.is_plainly_quoted,
        has_controls=content.has_controls or content.carriage_returns > content.line_ends,
        fields=fields,
    )


def starts_with(path: Path, magic: bytes) -> bool:
    """Whether the first bytes of a file are these.

    Raises InputError when it can't be read.
    """
    try:
        with path.open("rb") as stream:
            return stream.read(len(magic)) == magic
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'not readable'}") from None


def scan_records(
    path: Path,
    what: str,
    fields: tuple[str, ...],
    is_first: Callable[[Sequence[str]], bool],
    read: Callable[[ScannedFile], Iterator[DataRow | BrokenRow]],
) -> ScannedFile:
    """Look once at a file of typed records, which `read` turns into rows of `fields`.

    Raises UnknownLayoutError when its first record is not one by `is_first`, InputError when it
    can't be read as a whole.
    """
    name = path.name
    try:
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            content = _Content(name, _stray_quote(","))
            digest, end = _digest(stream, content)
            if end == 0:
                raise InputError(f"{name}: the file is empty; expected {what}")
            stream.seek(0)
            line_no, first = _first_record(stream)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'not readable'}") from None
    if not is_first(first):
        shown = (first or [""])[0][:40]
        raise UnknownLayoutError(f"{name}, line {line_no}: {shown!r}; expected {what}")
    return ScannedFile(
        path=path,
        name=name,
        sha256=digest,
        size=status.st_size,
        modified_ns=status.st_mtime_ns,
        delimiter=",",
        header_line=0,
        data_start=0,
        data_end=end,
        lines=1,
        is_plainly_quoted=False,
        has_controls=True,
        fields=fields,
        read=read,
    )


Translate = Callable[[Mapping[str, str | None]], list[str | None]]
"""From the cells of a row by field to the cells that stand for it."""


def scan_translated(
    path: Path, layout: Layout, fields: Sequence[str], make: Callable[[], Translate]
) -> ScannedFile:
    """Look once at a table whose rows become cells of `fields`; `make` makes what translates them.

    One is made for each reading, so that it may count. Raises what `scan_file` raises.
    """
    scanned = scan_file(path, layout)

    def read(file: ScannedFile) -> Iterator[DataRow | BrokenRow]:
        del file
        translate = make()
        for row in tolerant_rows(scanned):
            if isinstance(row, BrokenRow):
                yield row
            else:
                cells = dict(zip(scanned.fields, row.cells, strict=True))
                yield DataRow(row.line_no, translate(cells))

    return replace(scanned, fields=tuple(fields), is_plainly_quoted=False, read=read)


def _first_record(stream: BinaryIO) -> tuple[int, list[str]]:
    for number in range(1, HEADER_LINES + 1):
        line = stream.readline(LONGEST_LINE)
        try:
            cells = _split(line, ",", first=number == 1)
        except csv.Error:
            # A cell longer than any of a table, as JSON may have it.
            cells = [line.decode("utf-8", "replace")]
        if any(cells) or not line:
            return number, cells
    return HEADER_LINES, []


def read_records(file: ScannedFile) -> Iterator[tuple[int, str, Sequence[str] | None]]:
    """First physical line, text and cells of each record; cells None when it can't be parsed."""
    with file.path.open("rb") as stream:
        if stream.read(len(_BOM)) != _BOM:
            stream.seek(0)
        yield from _records(stream, file)
        require_unchanged(stream, file)


def read_lines(file: ScannedFile) -> Iterator[tuple[int, str]]:
    """Each physical line and its number."""
    with file.path.open("rb") as stream:
        for line_no, line in enumerate(stream, start=1):
            text = line.removeprefix(_BOM) if line_no == 1 else line
            yield line_no, text.decode("utf-8").rstrip("\r\n")
        require_unchanged(stream, file)


def _stray_quote(delimiter: str) -> re.Pattern[bytes]:
    """A quote with an ordinary byte on both sides: neither opening, closing nor doubled."""
    ordinary = b'[^"\r\n' + re.escape(delimiter.encode()) + b"]"
    return re.compile(ordinary + b'"' + ordinary)


def _digest(stream: BinaryIO, content: _Content) -> tuple[str, int]:
    """Checksum of all bytes, and where the last byte ends that is no line end."""
    digest = hashlib.sha256()
    offset = end = 0
    while chunk := stream.read(CHUNK_BYTES):
        digest.update(chunk)
        content.feed(chunk)
        stripped = chunk.rstrip(b"\r\n")
        if stripped:
            end = offset + len(stripped)
        offset += len(chunk)
    content.feed(b"", final=True)
    return digest.hexdigest(), 0 if end <= len(_BOM) and _is_only_bom(stream, end) else end


def _is_only_bom(stream: BinaryIO, end: int) -> bool:
    stream.seek(0)
    return stream.read(end) in (b"", _BOM)


def _count_lines(stream: BinaryIO, start: int, end: int) -> int:
    if start >= end:
        return 0
    stream.seek(start)
    left, count = end - start, 1
    while left > 0 and (chunk := stream.read(min(CHUNK_BYTES, left))):
        count += chunk.count(b"\n")
        left -= len(chunk)
    return count


def _find_header(stream: BinaryIO, name: str, layout: Layout) -> tuple[int, int, tuple[str, ...]]:
    wanted = {_plain(header): field for field, header in layout.columns.items()}
    if not layout.has_header:
        return _number_columns(stream, name, layout, wanted)
    best: tuple[int, int, list[str]] | None = None
    for number in range(1, HEADER_LINES + 1):
        line = stream.readline(LONGEST_LINE)
        if not line:
            break
        cells = [_plain(cell) for cell in _split(line, layout.delimiter, first=number == 1)]
        while cells and not cells[-1]:
            cells.pop()
        known = sum(cell in wanted for cell in cells)
        if known > (best[1] if best else 0):
            best = (number, known, cells)
        if all(_plain(layout.columns[field]) in cells for field in layout.required):
            return number, stream.tell(), _fields(cells, wanted, name, number)
    at, _, cells = best or (1, 0, [])
    missing = [
        h for f, h in layout.columns.items() if f in layout.required and _plain(h) not in cells
    ]
    raise UnknownLayoutError(
        f"{name}, line {at}: column {missing[0]!r} is missing; expected {layout.what}"
    )


def _number_columns(
    stream: BinaryIO, name: str, layout: Layout, wanted: Mapping[str, str]
) -> tuple[int, int, tuple[str, ...]]:
    """Columns of a file without a header, by how many its first row has."""
    has_bom = stream.read(len(_BOM)) == _BOM
    start = len(_BOM) if has_bom else 0
    stream.seek(start)
    width = len(_split(stream.readline(LONGEST_LINE), layout.delimiter, first=False))
    cells = [str(number) for number in range(1, width + 1)]
    missing = [h for f, h in layout.columns.items() if f in layout.required and h not in cells]
    if missing:
        raise UnknownLayoutError(
            f"{name}, line 1: column {missing[0]} is missing, there are {width}; "
            f"expected {layout.what}"
        )
    return 0, start, _fields(cells, wanted, name, 1)


def _split(line: bytes, delimiter: str, *, first: bool) -> list[str]:
    if first:
        line = line.removeprefix(_BOM)
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    return next(csv.reader([text], delimiter=delimiter), [])


def _plain(header: str) -> str:
    return header.strip().casefold()


def _fields(
    cells: Sequence[str], wanted: Mapping[str, str], name: str, line: int
) -> tuple[str, ...]:
    fields: list[str] = []
    for number, cell in enumerate(cells, start=1):
        field = wanted.get(cell, f"extra_{number}")
        if field in fields:
            raise InputError(f"{name}, line {line}: column {cell!r} stands twice; expected once")
        fields.append(field)
    return tuple(fields)


def raw_chunks(file: ScannedFile) -> Iterator[bytes]:
    """The bytes of the rows, without the header and without line ends at the end of the file."""
    with file.path.open("rb") as stream:
        stream.seek(file.data_start)
        left = file.data_end - file.data_start
        while left > 0 and (chunk := stream.read(min(CHUNK_BYTES, left))):
            yield chunk
            left -= len(chunk)
        require_unchanged(stream, file)


def require_unchanged(stream: BinaryIO, file: ScannedFile) -> None:
    """Raise InputError when the file is not as it was when it was looked at."""
    status = os.fstat(stream.fileno())
    if (status.st_size, status.st_mtime_ns) != (file.size, file.modified_ns):
        raise InputError(
            f"{file.name}: the file changed while it was read; expected a finished file"
        )


def tolerant_rows(file: ScannedFile) -> Iterator[DataRow | BrokenRow]:
    """Every row of the file, in its order; blank lines are passed over."""
    width = len(file.fields)
    expected = f"{width} cells, as in the header"
    with file.path.open("rb") as stream:
        stream.seek(file.data_start)
        for line_no, raw, cells in _records(stream, file):
            if cells is None:
                yield BrokenRow(
                    line_no, raw, raw[:200], "a quoted cell is not closed or badly quoted", expected
                )
            elif not any(cells):
                continue
            elif len(cells) > width and not any(cells[width:]):
                yield DataRow(line_no, [cell or None for cell in cells[:width]])
            elif len(cells) != width:
                yield BrokenRow(
                    line_no, raw, f"{len(cells)} cells", f"{len(cells)} cells of {width}", expected
                )
            else:
                yield DataRow(line_no, [cell or None for cell in cells])
        require_unchanged(stream, file)


def _records(
    stream: BinaryIO, file: ScannedFile
) -> Iterator[tuple[int, str, Sequence[str] | None]]:
    """First physical line, text and cells of each record; cells None when it can't be parsed.

    A record that never ends is given up after LONGEST_QUOTED_LINES lines: its first line is
    broken, and reading goes on with the next physical line.
    """
    line_no = file.header_line
    while line := stream.readline():
        line_no += 1
        text = line.decode("utf-8").rstrip("\r\n")
        if not text:
            continue
        cells = _parse(text, file.delimiter)
        if cells is not None or '"' not in text:
            yield line_no, text, cells
            continue
        resume = stream.tell()
        joined, more = text, 0
        while cells is None and more < LONGEST_QUOTED_LINES and (line := stream.readline()):
            more += 1
            joined = f"{joined}\n{line.decode('utf-8').rstrip(chr(13) + chr(10))}"
            cells = _parse(joined, file.delimiter)
        if cells is None:
            stream.seek(resume)
            yield line_no, text, None
            continue
        yield line_no, joined, cells
        line_no += more


def _parse(text: str, delimiter: str) -> list[str] | None:
    try:
        lines = (f"{line}\n" for line in text.split("\n"))
        return next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None
