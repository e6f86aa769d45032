from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from duebook.db import service_user
from duebook.db.service_user import ServiceUser, open_tree, open_way
from duebook.errors import ConfigurationError

# A user of no account and no process: only what is granted to it by number counts.
STRANGER = ServiceUser("stranger", 2_000_000_001, os.getgid())
NOBODY_ELSE = ServiceUser("other", 2_000_000_002, 2_000_000_002)


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    for directory in (tmp_path / "a", tmp_path / "a" / "b"):
        directory.mkdir(mode=0o700)
    return tmp_path / "a" / "b"


def no_acl(path: Path, user: ServiceUser, wanted: int) -> None:
    raise OSError(errno.ENOTSUP, "no ACLs here")


def test_a_way_is_opened_to_one_user_and_searched_only(closed: Path) -> None:
    user = ServiceUser("stranger", 2_000_000_001, 2_000_000_001)
    opened = open_way(closed, user)
    assert opened[-2:] == [closed.parent, closed]
    for directory in (closed, closed.parent):
        assert directory.stat().st_mode & 0o007 == 0
        assert service_user._allows(directory, user, 1)
        assert not service_user._allows(directory, user, 4)
        assert not service_user._allows(directory, NOBODY_ELSE, 1)


def test_opening_twice_changes_nothing_more(closed: Path) -> None:
    user = ServiceUser("stranger", 2_000_000_001, 2_000_000_001)
    open_way(closed, user)
    before = os.getxattr(closed, "system.posix_acl_access")
    assert open_way(closed, user) == []
    assert os.getxattr(closed, "system.posix_acl_access") == before


def test_two_users_may_be_let_through(closed: Path) -> None:
    user = ServiceUser("stranger", 2_000_000_001, 2_000_000_001)
    open_way(closed, user)
    open_way(closed, NOBODY_ELSE)
    assert service_user._allows(closed, user, 1)
    assert service_user._allows(closed, NOBODY_ELSE, 1)


def test_what_a_strict_umask_closed_is_opened_for_reading(closed: Path) -> None:
    user = ServiceUser("stranger", 2_000_000_001, 2_000_000_001)
    library, program = closed / "library.so", closed / "program"
    library.touch(0o600)
    program.touch(0o700)
    open_tree(closed, user)
    assert service_user._allows(closed, user, 5)
    assert service_user._allows(library, user, 4)
    assert not service_user._allows(library, user, 1)
    assert service_user._allows(program, user, 5)
    assert not service_user._allows(program, user, 2)


def test_without_acls_an_idle_group_is_handed_over(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_user, "_grant_acl", no_acl)
    open_way(closed, STRANGER)
    status = closed.stat()
    assert (status.st_gid, status.st_mode & 0o077) == (STRANGER.gid, 0o010)


def test_without_acls_a_group_that_has_rights_is_not_robbed(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_user, "_grant_acl", no_acl)
    closed.chmod(0o750)
    closed.parent.chmod(0o755)
    user = ServiceUser("stranger", 2_000_000_001, 2_000_000_001)
    with pytest.raises(ConfigurationError, match="can't be let through") as caught:
        service_user._grant(closed, user, 1)
    assert closed.stat().st_mode & 0o777 == 0o750
    assert "DUEBOOK_DATABASE_URL" in str(caught.value)
