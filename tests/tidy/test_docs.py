"""The documents keep what they promise: links lead somewhere, and named commands exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import typer.main
from packaging.requirements import Requirement

from duebook.cli import app
from tests.tidy.rules import ROOT, files, name_of

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(
    r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)|(?:src|srcset|href)=\"(?P<attribute>[^\"]+)\""
)
_HEADING = re.compile(r"^#{1,6}\s+(?P<text>.+?)\s*$", re.MULTILINE)
_CODE = re.compile(r"```[a-z]*\n(?P<block>.*?)^```|`(?P<span>[^`\n]+)`", re.MULTILINE | re.DOTALL)
_MAKE = re.compile(r"(?:^|[;&|(]\s*)make(?P<targets>(?: +[a-z][a-z-]*)+)", re.MULTILINE)
_COMMAND = re.compile(
    r"(?:^|[;&|(]\s*|\$\s+)(?:\.venv/bin/)?duebook(?P<words>(?: +[a-z][a-z-]*)+)", re.MULTILINE
)


def _documents() -> list[Path]:
    return [path for path in files() if path.suffix == ".md"]


def _anchors(path: Path) -> set[str]:
    """The anchors that GitHub makes of a document's headings."""
    bare = _FENCE.sub("", path.read_text())
    found = set()
    for match in _HEADING.finditer(bare):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match["text"]).replace("`", "")
        found.add(re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text.lower())))
    return found


def _code(path: Path) -> str:
    return "\n".join(m["block"] or m["span"] for m in _CODE.finditer(path.read_text()))


def _leads_nowhere(path: Path, target: str) -> bool:
    where, _, anchor = target.partition("#")
    found = (path.parent / where).resolve() if where else path
    if not found.exists():
        return True
    return bool(anchor) and found.suffix == ".md" and anchor not in _anchors(found)


@pytest.mark.parametrize("path", _documents(), ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    text = _FENCE.sub("", path.read_text())
    targets = [match["target"] or match["attribute"] for match in _LINK.finditer(text)]
    inside = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert [target for target in inside if _leads_nowhere(path, target)] == []


@pytest.mark.parametrize("path", _documents(), ids=name_of)
def test_named_make_targets_exist(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {word for match in _MAKE.finditer(_code(path)) for word in match["targets"].split()}
    assert named - targets == set()


def _commands() -> dict[str, set[str]]:
    """Each command of the command line, and the commands under it."""
    top = getattr(typer.main.get_command(app), "commands", {})
    return {name: set(getattr(command, "commands", ())) for name, command in top.items()}


@pytest.mark.parametrize("path", _documents(), ids=name_of)
def test_named_commands_exist(path: Path) -> None:
    known = _commands()
    unknown = []
    for match in _COMMAND.finditer(_code(path)):
        first, *rest = match["words"].split()
        if first not in known or (known[first] and (not rest or rest[0] not in known[first])):
            unknown.append(match[0].strip())
    assert unknown == []


def test_every_make_target_says_what_it_does() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = set(re.findall(r"^\.PHONY: (\S+)", makefile, re.MULTILINE))
    assert phony == set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = (
        project["project"]["dependencies"]
        + project["project"]["optional-dependencies"]["celery"]
        + project["dependency-groups"]["dev"]
    )
    asked = {Requirement(line).name.lower() for line in lines}
    listed = re.findall(
        r"^\| `([\w.-]+)` \| \S", (ROOT / "docs/dependencies.md").read_text(), re.MULTILINE
    )
    assert asked - {name.lower() for name in listed} == set()
    assert {name.lower() for name in listed} - asked == set()


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs/adr").glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))
