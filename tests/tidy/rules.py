"""The house rules that no linter has: each takes text, and gives what breaks it, line by line.

The rules are pure functions, so that `test_rules.py` can show each of them catching something.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINE_LENGTH = 100
FUNCTION_LINES = 70
DAG_LINES = 80

# Put together here, so that this file does not hold what it looks for.
UNFINISHED = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("python" + "hosted", "org"),
        ("registry", "npmjs"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("crates", "io"),
    )
)
MACHINE_PATHS = tuple("/" + name + "/" for name in ("work", "farm", "root", "tmp/lab"))

_STATEMENTS = (
    r"select\s.+\sfrom\s",
    r"select\s+[\w.]+\s*\(",
    r"insert\s+into\s",
    r"delete\s+from\s",
    r"update\s+[\w.\"]+\s+(as\s+\w+\s+)?set\s",
    r"with\s+(recursive\s+)?\w+\s+as\s+(not\s+)?(materialized\s+)?\(",
    r"merge\s+into\s",
    r"(create|drop|alter)\s+(or\s+replace\s+)?((unique|temp|temporary|unlogged|materialized)\s+)*"
    r"(table|view|function|procedure|schema|database|role|user|index|extension|type|sequence)\s+"
    r"(if\s+(not\s+)?exists\s+)?[\w.\"{%]+",
    r"truncate\s+(table\s+)?duebook",
    r"copy\s+[\w.\"]+(\s*\(.*\))?\s+(from|to)\s",
    r"(grant|revoke)\s.+\s(to|from)\s",
    r"(vacuum|analyze|reindex)\s+(\(.*\)\s+)?[\w.]+$",
    r"set\s+(local|session)\s+[\w.]+\s*(=|\sto\s)",
    r"set\s+[\w.]+\s*=\s",
    r"(un)?listen\s+[a-z_]+$",
    r"notify\s+[a-z_]+$",
)
_SQL = re.compile(r"^\s*(" + "|".join(_STATEMENTS) + ")", re.IGNORECASE | re.DOTALL)
_OBJECT = re.compile(
    r"^create\s+(?:or\s+replace\s+)?(?:materialized\s+)?(?P<kind>function|procedure|view)\s+"
    r"(?P<schema>\w+)\.(?P<name>\w+)",
    re.IGNORECASE | re.MULTILINE,
)
_SQL_NOISE = re.compile(
    r"--[^\n]*|/\*.*?\*/|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|'(?:''|[^'])*'|\"(?:\"\"|[^\"])*\"",
    re.DOTALL,
)


@functools.cache
def files() -> tuple[Path, ...]:
    """Every file of the repository that is committed or about to be, by path."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    return tuple(sorted(ROOT / name for name in set(listed) if name and (ROOT / name).is_file()))


def files_under(folder: str, suffix: str) -> list[Path]:
    """The files of one folder of the repository that end in `suffix`."""
    return [
        path for path in files() if path.is_relative_to(ROOT / folder) and path.suffix == suffix
    ]


def name_of(path: Path) -> str:
    """The path as a reader of a failed test wants it."""
    return path.relative_to(ROOT).as_posix()


def long_lines(text: str) -> Iterator[str]:
    """Lines over the limit; a link can't be broken, so a line that holds one is let pass."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LINE_LENGTH and "://" not in line:
            yield f"{number}: {len(line)} characters"


def long_functions(source: str) -> Iterator[str]:
    """Functions over the limit, decorators and docstring included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            length = (node.end_lineno or first) - first + 1
            if length > FUNCTION_LINES:
                yield f"{first}: {node.name} has {length} lines"


def unfinished(text: str) -> Iterator[str]:
    """Words that say: not done. In quotes the last of them is ISO 4217's code of no currency."""
    pattern = re.compile(r"(?<![\"'])\b(" + "|".join(UNFINISHED) + r")\b")
    for number, line in enumerate(text.splitlines(), 1):
        if pattern.search(line):
            yield f"{number}: {line.strip()}"


def foreign_places(text: str) -> Iterator[str]:
    """Hosts of package registries and paths of one machine: both are true in one place only."""
    for number, line in enumerate(text.splitlines(), 1):
        for word in REGISTRIES:
            if word in line:
                yield f"{number}: names {word}"
        for path in MACHINE_PATHS:
            if re.search(r"(?<![\w.$}/>-])" + re.escape(path), line):
                yield f"{number}: names {path}"


def sql_strings(source: str) -> Iterator[str]:
    """String constants, parts of f-strings included, that begin like a statement."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            text = node.value
            if _SQL.match(text) and not text.rstrip().endswith("."):
                yield f"{node.lineno}: {' '.join(text.split())[:60]}"


def prints(source: str) -> Iterator[str]:
    """Calls of print: output belongs to the command line, everything else logs."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"print", "pprint"}
        ):
            yield f"{node.lineno}: {node.func.id}()"


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Every module that the source imports, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module


def statements(text: str) -> int:
    """How many statements a SQL text has; comments, strings and bodies do not count."""
    bare = _SQL_NOISE.sub(" x ", re.sub(r"--[^\n]*", " ", text))
    return sum(1 for part in bare.split(";") if part.strip())


def query_faults(stem: str, text: str) -> Iterator[str]:
    """What a file of sql/queries lacks: its name, its reason, being exactly one statement."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != f"-- name: {stem}":
        yield f"the first line is not `-- name: {stem}`"
    if len(lines) < 2 or not re.match(r"-- \S", lines[1]):
        yield "the second line does not say what it is for"
    count = statements(text)
    if count != 1:
        yield f"{count} statements instead of one"


def objects(text: str) -> list[str]:
    """The functions and views that a SQL text makes, by name."""
    return [match["name"] for match in _OBJECT.finditer(text)]
