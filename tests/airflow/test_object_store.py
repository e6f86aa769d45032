"""One suite for every place where files arrive: a folder, and ObjectStoragePath over two stores."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from duebook.config import ProviderAccountConfig
from duebook.errors import ConfigurationError, UnavailableError
from duebook.services.reconcile import ReconcileRequest, reconcile
from duebook.settlements.stores import FileStore, LocalFolder, open_store
from tests.settlement_files import World, make_world, no_source, settled

pytestmark = pytest.mark.filterwarnings("default")  # Airflow's own, on import


@pytest.fixture(autouse=True)
def memory() -> None:
    """A bucket that is nowhere: no provider package registers fsspec's own."""
    from airflow.sdk.io import attach

    attach("memory", fs=MemoryFileSystem())
    attach("memory", conn_id="login", fs=MemoryFileSystem())


class Place:
    """A folder that files are put into, by whichever way."""

    def __init__(self, kind: str, folder: Path) -> None:
        urls = {
            "file": f"file://{folder}/inbox",
            "memory": f"memory://login@bucket-{uuid4()}/inbox",
        }
        self.kind = kind
        self.url = urls.get(kind, str(folder / "inbox"))

    @property
    def store(self) -> FileStore:
        if self.kind == "folder":
            return LocalFolder(Path(self.url))
        from duebook.airflow.object_store import open_object_store

        return open_object_store(self.url)

    def put(self, name: str, content: bytes) -> None:
        if self.kind == "folder":
            path: Any = Path(self.url) / name
        else:
            from airflow.sdk import ObjectStoragePath

            path = ObjectStoragePath(self.url) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.fixture(params=["folder", "file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


def test_files_are_lent_whole_and_in_the_order_of_their_names(place: Place) -> None:
    large = bytes(range(256)) * 20_000
    for name, content in (("b.csv", b"2"), ("a.csv", large), ("a.txt", b"no"), ("c.csv", b"")):
        place.put(name, content)
    assert place.store.names("*.csv") == ["a.csv", "b.csv", "c.csv"]
    with place.store.lend("*.csv") as paths:
        assert [path.name for path in paths] == ["a.csv", "b.csv", "c.csv"]
        assert [path.read_bytes() for path in paths] == [large, b"2", b""]


def test_copies_are_gone_afterwards_and_the_originals_are_not(place: Place) -> None:
    place.put("a.csv", b"1")
    with place.store.lend("*.csv") as paths:
        (lent,) = paths
    assert lent.exists() == (place.kind == "folder")
    assert place.store.names("*") == ["a.csv"]


def test_what_comes_later_is_seen(place: Place) -> None:
    place.put("a.csv", b"1")
    store = place.store
    assert store.names("*.csv") == ["a.csv"]
    place.put("b.csv", b"2")
    assert store.names("*.csv") == ["a.csv", "b.csv"]


def test_a_prefix_is_taken_letter_by_letter(tmp_path: Path) -> None:
    from duebook.airflow.object_store import open_object_store

    for name in ("night[1]", "night1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.csv").write_bytes(b"1")
    assert open_object_store(f"file://{tmp_path}/night[1]").names("*") == ["night[1].csv"]


def test_names_of_folders_below_are_no_files(place: Place) -> None:
    place.put("below.csv/a.csv", b"1")
    place.put("other/a.csv", b"2")
    assert place.store.names("*.csv") == []
    assert place.store.names("*/*.csv") == ["below.csv/a.csv", "other/a.csv"]
    with place.store.lend("*/*.csv") as paths:
        assert [path.read_bytes() for path in paths] == [b"1", b"2"], "of one name, two files"


def test_a_place_that_is_not_there_is_no_night_without_files(place: Place) -> None:
    with pytest.raises(UnavailableError, match=r"its folder .* is not there"):
        place.store.names("*")
    with pytest.raises(UnavailableError, match="is not there"), place.store.lend("*"):
        pass


def test_an_error_of_the_store_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from duebook.airflow.object_store import open_object_store

    place = Place("memory", Path())
    place.put("a.csv", b"1")

    def refuse(*values: Any, **others: Any) -> Any:
        raise PermissionError("the login, quoted")

    monkeypatch.setattr(MemoryFileSystem, "open", refuse)
    with pytest.raises(UnavailableError) as told, open_object_store(place.url).lend("*"):
        pass
    assert str(told.value) == f"its folder {place.url} can't be read (PermissionError)"


def test_an_object_that_is_cut_off_while_it_is_copied_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from duebook.airflow.object_store import open_object_store

    place = Place("memory", Path())
    place.put("a.csv", b"whole")
    monkeypatch.setattr(MemoryFileSystem, "open", lambda *_: io.BytesIO(b"who"))
    with (
        pytest.raises(UnavailableError, match=r"^a\.csv changed while it was copied"),
        open_object_store(place.url).lend("*"),
    ):
        pass


def test_a_connection_that_is_not_defined_is_no_anonymous_login(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Airflow's path falls back to the store without a login, so the path itself is never asked."""
    from airflow.sdk import ObjectStoragePath
    from airflow.sdk.exceptions import AirflowNotFoundException

    from duebook.airflow.object_store import open_object_store

    place = Place("memory", Path())
    place.put("a.csv", b"1")

    def undefined(path: ObjectStoragePath) -> Any:
        raise AirflowNotFoundException(f"{path.conn_id}, quoted")

    monkeypatch.setattr(ObjectStoragePath, "fs", property(undefined))
    with pytest.raises(ConfigurationError) as told:
        open_object_store(place.url).names("*")
    assert str(told.value) == f"folder {place.url}: its Airflow connection is not defined"


def test_a_scheme_that_nobody_knows_says_what_is_missing() -> None:
    from duebook.airflow.object_store import open_object_store

    with pytest.raises(ConfigurationError, match=r"^folder s9://c@b/p: its scheme needs"):
        open_object_store("s9://c@b/p").names("*")


def test_without_airflow_a_url_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="folder s3://c@b/p is an object store"):
        open_store("s3://c@b/p", None)


@pytest.mark.parametrize("folder", ["s3://conn@bucket/prefix", "file:///data/in", "memory://b/p"])
def test_a_url_in_duebook_toml_stays_what_it_is(folder: str) -> None:
    settings = {"provider": "adyen", "mode": "dry_run", "settle_within": "P3D", "zone": "UTC"}
    account = ProviderAccountConfig.model_validate({**settings, "folder": folder})
    assert account.folder == folder
    assert account.stored_settings()["folder"] == folder
    stored = ProviderAccountConfig.model_validate({**settings, **account.stored_settings()})
    assert stored == account
    local = ProviderAccountConfig.model_validate({**settings, "folder": "/data/in"})
    assert local.folder == Path("/data/in")


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> World:
    return make_world(database_url, tmp_path)


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_night_takes_each_object_once(kind: str, world: World) -> None:
    from duebook.airflow.object_store import open_object_store

    place = Place(kind, world.folder)
    settings = world.config.provider_accounts["adyen"].model_dump()
    world.configure(provider_accounts={"adyen": {**settings, "folder": place.url}})

    def night() -> Any:
        request = ReconcileRequest("adyen", triggered_by="pytest")
        return reconcile(world.connect, request, world.config, no_source, None, open_object_store)

    with pytest.raises(UnavailableError, match=r"^provider account adyen: its folder"):
        night()
    place.put("one.csv", world.adyen(settled(1, "1.00")).read_bytes())
    assert night().entries_new == 1
    place.put("two.csv", world.adyen(settled(2, "1.00")).read_bytes())
    report = night()
    assert (report.entries_new, report.entries_unchanged) == (1, 1)
    names = world.rows("select name from duebook.settlement_file order by 1")
    assert [row["name"] for row in names] == ["one.csv", "two.csv"]
    with pytest.raises(ConfigurationError, match="is an object store"):
        world.reconcile()


def test_the_doctor_looks_into_an_object_store(world: World) -> None:
    from duebook.airflow.object_store import open_object_store
    from duebook.services.doctor import Probes, doctor

    place = Place("memory", world.folder)
    settings = world.config.provider_accounts["adyen"].model_dump()
    world.configure(provider_accounts={"adyen": {**settings, "folder": place.url}})

    def looked() -> tuple[bool, str]:
        probes = Probes("test", lambda _: None, no_channel, stores=open_object_store)
        found = {each.name: each for each in doctor(world.connect, world.config, probes)}
        return found["folder of adyen"].ok, found["folder of adyen"].detail

    assert looked() == (False, f"its folder {place.url} is not there, or empty")
    place.put("one.csv", b"1")
    assert looked() == (True, f"{place.url}, 1 files like *.csv")


def no_channel(name: str) -> Any:
    raise ConfigurationError(f"no channel {name} here")
