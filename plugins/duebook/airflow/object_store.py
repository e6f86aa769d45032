"""The files of a provider in an object store, through Airflow's ObjectStoragePath.

`s3://connection@bucket/prefix` is read with the login of that Airflow connection; so are gs, abfs
and every other scheme that an installed provider package registers, and `file://`.
"""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final

from airflow.sdk import ObjectStoragePath
from airflow.sdk.exceptions import AirflowNotFoundException

from duebook.errors import ConfigurationError, DuebookError, UnavailableError
from duebook.settlements.stores import scratch

_CHUNK_BYTES: Final = 1 << 20


def open_object_store(url: str) -> ObjectStore:
    """The store at a URL.

    Raises ConfigurationError for a scheme that no installed package knows.
    """
    return ObjectStore(url)


class ObjectStore:
    """A prefix of a bucket, as a `FileStore`. Objects are copied whole, one after another."""

    def __init__(self, url: str) -> None:
        self._url = url

    def names(self, pattern: str) -> list[str]:
        """The objects below the prefix like `pattern`, by name; `**/` looks below it too.

        Raises UnavailableError when the store can't be reached or has nothing at the prefix.
        """
        with _told(self._url):
            return list(self._objects(pattern)[1])

    @contextmanager
    def lend(self, pattern: str) -> Iterator[Sequence[Path]]:
        """Copies of the same, for as long as the context lasts. Raises the same."""
        with scratch() as folder:
            with _told(self._url):
                files, found = self._objects(pattern)
                copies = [
                    _copy(files, source, folder / str(number) / PurePosixPath(name).name)
                    for number, (name, source) in enumerate(found.items())
                ]
            yield copies

    def _objects(self, pattern: str) -> tuple[Any, dict[str, str]]:
        """The file system, and by name below the prefix where each object is.

        All goes through the file system with the connection's login: a path whose connection can't
        be used would go on without one.
        """
        root = ObjectStoragePath(self._url)
        files, prefix = root.fs, root.path.rstrip("/")
        # A long-lived process may have listed it before the files of this night came.
        files.invalidate_cache()
        if not files.exists(prefix):
            raise UnavailableError(f"its folder {self._url} is not there, or empty")
        found = files.glob(f"{glob.escape(prefix)}/{pattern}", detail=True)
        # The marker of a folder is no file.
        paths = sorted(path for path, info in found.items() if info["type"] == "file")
        return files, {str(PurePosixPath(path).relative_to(prefix)): path for path in paths}


def _copy(files: Any, source: str, target: Path) -> Path:
    """Raises UnavailableError for an object that changed meanwhile."""
    size = files.size(source)
    target.parent.mkdir()
    with files.open(source, "rb") as reading, target.open("wb") as writing:
        shutil.copyfileobj(reading, writing, _CHUNK_BYTES)
    files.invalidate_cache()
    if target.stat().st_size != size or files.size(source) != size:
        raise UnavailableError(f"{target.name} changed while it was copied; expected a whole file")
    return target


@contextmanager
def _told(url: str) -> Iterator[None]:
    """Says of a store's own errors which store, in one line and without what they quote."""
    try:
        yield
    except DuebookError:
        raise
    except AirflowNotFoundException:
        raise ConfigurationError(f"folder {url}: its Airflow connection is not defined") from None
    except (ValueError, ImportError) as error:
        # No file system for the scheme, or one whose package is missing.
        raise ConfigurationError(
            f"folder {url}: its scheme needs an installed provider package ({str(error)[:100]})"
        ) from error
    except Exception as error:
        kind = type(error).__name__
        raise UnavailableError(f"its folder {url} can't be read ({kind})") from error
