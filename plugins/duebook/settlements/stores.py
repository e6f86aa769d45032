"""Where a provider's files arrive: a local folder, or any store that keeps the Protocol.

What is read is always a local file, looked at more than once; a store that is elsewhere lends
copies for as long as a run lasts.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from duebook.errors import ConfigurationError, UnavailableError

_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


class FileStore(Protocol):
    """A place where the files of one provider account arrive.

    Both methods raise UnavailableError when it is not there, or can't be reached: that is no night
    without settlements.
    """

    def names(self, pattern: str) -> list[str]:
        """The files whose names are like `pattern`, in the order of their names."""
        ...

    def lend(self, pattern: str) -> AbstractContextManager[Sequence[Path]]:
        """The same as whole local files, which may be gone once the context has ended."""
        ...


StoreFactory = Callable[[str], FileStore]
"""Makes the store at a URL such as `s3://connection@bucket/prefix`.

Raises ConfigurationError for one that it can't make.
"""


def is_url(folder: str | Path) -> bool:
    """Whether a folder names a store by its URL."""
    return isinstance(folder, str) and _URL.match(folder) is not None


def open_store(folder: str | Path, stores: StoreFactory | None) -> FileStore:
    """The store of an account's folder; `stores` makes the one of a URL.

    Raises ConfigurationError for a URL where nothing can make its store.
    """
    if not is_url(folder):
        return LocalFolder(Path(folder))
    if stores is None:
        raise ConfigurationError(
            f"folder {folder} is an object store, which is read through Airflow: not from here"
        )
    return stores(str(folder))


class LocalFolder:
    """A folder of this machine, or one that is mounted as such. Its files are read in place."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self, pattern: str) -> list[str]:
        return [str(path.relative_to(self._folder)) for path in self._files(pattern)]

    @contextmanager
    def lend(self, pattern: str) -> Iterator[Sequence[Path]]:
        yield self._files(pattern)

    def _files(self, pattern: str) -> list[Path]:
        if not self._folder.is_dir():
            raise UnavailableError(f"its folder {self._folder} is not there")
        if not os.access(self._folder, os.R_OK | os.X_OK):
            raise UnavailableError(f"its folder {self._folder} is not readable")
        return sorted(path for path in self._folder.glob(pattern) if path.is_file())


@contextmanager
def files_of(
    folder: str | Path | None, pattern: str, stores: StoreFactory | None
) -> Iterator[Sequence[Path]]:
    """The files of an account's folder while a run lasts; none when no folder is configured.

    Raises UnavailableError and ConfigurationError as `open_store` and its store do.
    """
    if folder is None:
        yield ()
        return
    with open_store(folder, stores).lend(pattern) as paths:
        yield paths


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for copies that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="duebook-files-") as name:
        yield Path(name)
