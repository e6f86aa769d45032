"""The locks say what pyproject.toml asks for: checked without a network."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.tidy.rules import ROOT

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[\w,-]+\])?==(?P<version>\S+)", re.MULTILINE)


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _asked(*groups: str) -> list[Requirement]:
    project = _project()
    lists = {
        "runtime": project["project"]["dependencies"],
        "celery": project["project"]["optional-dependencies"]["celery"],
        "dev": project["dependency-groups"]["dev"],
    }
    return [Requirement(line) for group in groups for line in lists[group]]


def _entries(lock: str) -> dict[str, tuple[Version, str]]:
    """Each pinned package: its version, and its block of the lock (hashes, who asked for it)."""
    text = (ROOT / "requirements" / lock).read_text()
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
    found: dict[str, tuple[Version, str]] = {}
    for block in blocks:
        if match := _PIN.match(block):
            found[canonicalize_name(match["name"])] = (Version(match["version"]), block)
    return found


LOCKS = [("dev.lock", ("runtime", "dev")), ("runtime.lock", ("runtime", "celery"))]


@pytest.mark.parametrize(("lock", "groups"), LOCKS)
def test_a_lock_pins_what_is_asked_for(lock: str, groups: tuple[str, ...]) -> None:
    pinned = _entries(lock)
    wrong = [
        str(asked)
        for asked in _asked(*groups)
        if (name := canonicalize_name(asked.name)) not in pinned
        or not asked.specifier.contains(pinned[name][0], prereleases=True)
    ]
    assert wrong == [], "run `make lock`"


@pytest.mark.parametrize(("lock", "groups"), LOCKS)
def test_a_lock_pins_nothing_that_is_asked_for_no_more(lock: str, groups: tuple[str, ...]) -> None:
    asked = {canonicalize_name(item.name) for item in _asked(*groups)}
    direct = {name for name, (_, block) in _entries(lock).items() if "duebook (pyproject" in block}
    assert direct == asked, "run `make lock`"


@pytest.mark.parametrize("lock", ["dev.lock", "runtime.lock"])
def test_every_pin_has_a_hash_and_no_address(lock: str) -> None:
    entries = _entries(lock)
    assert len(entries) > 100
    assert [name for name, (_, block) in entries.items() if "--hash=sha256:" not in block] == []
    text = (ROOT / "requirements" / lock).read_text()
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host", text)


def test_both_locks_agree() -> None:
    dev, runtime = _entries("dev.lock"), _entries("runtime.lock")
    differing = [name for name in dev.keys() & runtime.keys() if dev[name][0] != runtime[name][0]]
    assert differing == []


def test_the_build_needs_nothing_from_outside_the_lock() -> None:
    # `make setup` installs the package without build isolation.
    pinned = _entries("dev.lock")
    for line in _project()["build-system"]["requires"]:
        asked = Requirement(line)
        assert asked.specifier.contains(pinned[canonicalize_name(asked.name)][0])
