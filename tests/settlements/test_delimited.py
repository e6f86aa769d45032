"""Files as bytes: where the header stands, what a line is, and what can't be read at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from duebook.errors import InputError
from duebook.settlements.delimited import (
    BrokenRow,
    DataRow,
    Layout,
    ScannedFile,
    raw_chunks,
    scan_file,
    tolerant_rows,
)

LAYOUT = Layout("columns a and b", {"a": "A", "b": "B", "c": "C"}, frozenset({"a", "b"}))


def scan(folder: Path, content: bytes) -> ScannedFile:
    path = folder / "f.csv"
    path.write_bytes(content)
    return scan_file(path, LAYOUT)


def rows(file: ScannedFile) -> list[tuple[int, list[str | None] | str]]:
    return [
        (row.line_no, list(row.cells) if isinstance(row, DataRow) else row.reason)
        for row in tolerant_rows(file)
    ]


def test_columns_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    file = scan(tmp_path, b"x,b , A\n1,2,3\n")
    assert file.fields == ("extra_1", "b", "a")
    assert rows(file) == [(2, ["1", "2", "3"])]


def test_the_header_is_found_below_other_lines(tmp_path: Path) -> None:
    file = scan(tmp_path, b"Report of today\n,,\n\nA,B\n1,2\n")
    assert (file.header_line, file.lines) == (4, 1)
    assert rows(file) == [(5, ["1", "2"])]


@pytest.mark.parametrize(
    "content", [b"A,B\n1,2\n3,4\n", b"A,B\r\n1,2\r\n3,4", b"\xef\xbb\xbfA,B\n1,2\n3,4\n\n\n"]
)
def test_line_ends_and_byte_order_marks_do_not_matter(tmp_path: Path, content: bytes) -> None:
    file = scan(tmp_path, content)
    assert file.lines == 2
    assert rows(file) == [(2, ["1", "2"]), (3, ["3", "4"])]
    assert b"".join(raw_chunks(file)).replace(b"\r", b"") == b"1,2\n3,4"


def test_lines_are_physical_lines_of_the_file(tmp_path: Path) -> None:
    file = scan(tmp_path, b'A,B\n"1\n1",2\n\n3,4\n5\n6,7\n')
    assert rows(file) == [
        (2, ["1\n1", "2"]),
        (5, ["3", "4"]),
        (6, "1 cells of 2"),
        (7, ["6", "7"]),
    ]


def test_a_quote_that_never_closes_costs_its_line_only(tmp_path: Path) -> None:
    file = scan(tmp_path, b'A,B\n1,"2\n' + b"3,4\n" * 3)
    reason = "a quoted cell is not closed or badly quoted"
    assert rows(file) == [(2, reason)] + [(line, ["3", "4"]) for line in (3, 4, 5)]


def test_a_stray_quote_is_no_quote(tmp_path: Path) -> None:
    file = scan(tmp_path, b'A,B\n5" disk,x"y\n')
    assert not file.is_plainly_quoted
    assert rows(file) == [(2, ['5" disk', 'x"y'])]
    assert scan(tmp_path, b'A,B\n"a ""b"" c","d"\n').is_plainly_quoted


def test_a_cut_last_line_is_one_broken_row(tmp_path: Path) -> None:
    file = scan(tmp_path, b"A,B\n1,2\n3")
    *good, last = tolerant_rows(file)
    assert len(good) == 1
    assert isinstance(last, BrokenRow)
    assert (last.line_no, last.raw) == (3, "3")


def test_empty_cells_are_nothing_and_rows_of_delimiters_are_blank(tmp_path: Path) -> None:
    assert rows(scan(tmp_path, b'A,B\n,\n"",1\n')) == [(3, [None, "1"])]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "f.csv: the file is empty; expected columns a and b"),
        (b"\n\n", "f.csv: the file is empty; expected columns a and b"),
        (b"\xef\xbb\xbf", "f.csv: the file is empty; expected columns a and b"),
        (b"A,C\n1,2\n", "f.csv, line 1: column 'B' is missing; expected columns a and b"),
        (b"\nB,C\n1,2\n", "f.csv, line 2: column 'A' is missing; expected columns a and b"),
        (b"A,B,a\n1,2,3\n", "f.csv, line 1: column 'a' stands twice; expected once"),
        (b"A,B\n1,caf\xe9\n", "f.csv, line 2: not UTF-8; expected a UTF-8 text file"),
        ("A,B\n1,2\n".encode("utf-16"), "f.csv, line 1: not UTF-8; expected a UTF-8 text file"),
        (b"A,B\n1,2\n3,\0\n", "f.csv, line 3: not UTF-8; expected a UTF-8 text file"),
        (b"A,B\n1,2\n3,\xc3", "f.csv, line 3: not UTF-8; expected a UTF-8 text file"),
    ],
)
def test_what_can_not_be_read_as_a_whole_is_one_line(
    tmp_path: Path, content: bytes, said: str
) -> None:
    with pytest.raises(InputError) as refusal:
        scan(tmp_path, content)
    assert str(refusal.value) == said


def test_a_multibyte_character_on_a_chunk_edge_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from duebook.settlements import delimited

    monkeypatch.setattr(delimited, "CHUNK_BYTES", 3)
    file = scan(tmp_path, "A,B\n1,ééé\n2,€\n".encode())
    assert rows(file) == [(2, ["1", "ééé"]), (3, ["2", "€"])]
    with pytest.raises(InputError, match="line 3: not UTF-8"):
        scan(tmp_path, "A,B\n1,ééé\n2,".encode() + b"\xe9\n4,5\n")


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.csv: No such file or directory"):
        scan_file(tmp_path / "no.csv", LAYOUT)


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    file = scan(tmp_path, b"A,B\n1,2\n")
    with file.path.open("ab") as stream:
        stream.write(b"3,4\n")
    with pytest.raises(InputError, match="changed while it was read"):
        list(raw_chunks(file))
