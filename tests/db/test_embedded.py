from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from duebook.db import embedded
from duebook.db.embedded import EmbeddedServer
from duebook.db.service_user import service_user
from duebook.errors import ConfigurationError, UnavailableError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def home(server_home: Path) -> Path:
    """A directory as `mktemp -d` makes it: only its owner passes, and here that may be root."""
    return server_home


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedServer]:
    """A server for the tests that only look."""
    home = Path(tempfile.mkdtemp(prefix="duebook-embedded-"))
    server = EmbeddedServer(home, durable=False)
    try:
        server.start()
        yield server
    finally:
        server.destroy()
        shutil.rmtree(home)


@pytest.fixture
def server(home: Path) -> EmbeddedServer:
    server = EmbeddedServer(home, durable=False)
    server.start()
    return server


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.02)


def arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def setting(url: str, name: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute("select current_setting(%s)", [name]).fetchone()
    assert row is not None
    return str(row[0])


def test_the_cluster_is_what_the_design_asks_for(running: EmbeddedServer) -> None:
    url = running.ensure_database("duebook")
    wanted = {
        "server_encoding": "UTF8",
        "data_checksums": "on",
        "timezone": "UTC",
        "password_encryption": "scram-sha-256",
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
    }
    admin = running.superuser_url()
    assert {name: setting(admin, name) for name in wanted} == wanted
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select datlocprovider::text, current_user, rolsuper, pg_get_userbyid(datdba)"
            " from pg_database, pg_roles where datname = 'duebook' and rolname = current_user"
        ).fetchall()
        assert connection.execute("select 'é' < 'z', upper('é')").fetchone() == (False, "É")
    assert rows == [("b", "duebook", False, "duebook")]


def test_it_listens_on_loopback_alone(running: EmbeddedServer) -> None:
    process = psutil.Process(running.status().pid)
    assert {each.laddr.ip for each in process.net_connections("inet")} == {"127.0.0.1"}
    assert [each for each in process.net_connections("unix") if str(each.laddr)] == []


def test_nobody_gets_in_without_the_password(running: EmbeddedServer) -> None:
    port = running.status().port
    for user in ("duebook", "postgres"):
        for password in ("", "wrong"):
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(
                    host="127.0.0.1", port=port, user=user, password=password, dbname="postgres"
                )


def test_secrets_are_readable_by_their_owner_only(running: EmbeddedServer) -> None:
    for name in ("password", "superuser_password"):
        path = running.root / name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.stat().st_uid == os.geteuid()
        assert len(path.read_text().strip()) >= 32
    assert not (running.root / "initdb_password").exists()


def test_the_log_carries_no_value_of_a_failed_statement(server: EmbeddedServer) -> None:
    url = server.ensure_database("duebook")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table t (amount bigint primary key, address text not null)")
        connection.execute("insert into t values (7391284, 'jane@shop.example')")
        for statement, values in (
            ("insert into t values (%s, %s)", [7391284, "jane@shop.example"]),
            ("select %s::text::bigint", ["7391284.55"]),
            ("select '7391284.55 jane@shop.example'::bigint", None),
            ("insert into t values (null, 'jane@shop.example')", None),
            ("select jane@shop.example 7391284", None),
            ("do $$ begin raise warning 'jane@shop.example 7391284'; end $$", None),
        ):
            try:
                connection.execute(statement, values)
            except psycopg.Error:
                continue
        # Waiting for a lock and being cancelled are logged too, in other words.
        with psycopg.connect(url) as other:
            other.execute("update t set address = 'jane@shop.example' where amount = 7391284")
            connection.execute("set lock_timeout = '1100ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                connection.execute("delete from t where amount = 7391284")
    server.stop()
    logs = [path.read_text() for path in server.log_directory.iterdir()]
    assert any("database system is ready" in text for text in logs)
    assert not [text for text in logs if "7391284" in text or "jane" in text]


def test_what_was_committed_is_there_after_a_stop_and_a_start(server: EmbeddedServer) -> None:
    url = server.ensure_database("duebook")
    with psycopg.connect(url) as connection:
        connection.execute("create table t as select 1 as n")
    server.stop()
    assert not server.status().running
    server.start()
    assert server.url() == url
    with psycopg.connect(url) as connection:
        assert connection.execute("select n from t").fetchone() == (1,)


def test_start_and_stop_may_be_repeated(server: EmbeddedServer) -> None:
    first = server.status()
    assert server.start() == first
    server.stop()
    server.stop()
    assert server.status().pid is None


def test_it_stops_when_the_way_to_it_was_closed_meanwhile(
    server: EmbeddedServer, home: Path
) -> None:
    home.chmod(0o700)
    server.stop()
    assert server.status().pid is None


def test_a_port_taken_meanwhile_is_left_to_its_taker(server: EmbeddedServer) -> None:
    taken = server.status().port
    server.stop()
    with socket.create_server(("127.0.0.1", taken or 0)):
        moved = server.start().port
        assert moved != taken
        assert setting(server.url("postgres"), "port") == str(moved)
    server.stop()
    assert server.start().port == moved


def test_a_port_taken_just_before_the_start_is_left_to_its_taker(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = server.status().port
    server.stop()
    monkeypatch.setattr(embedded, "_is_free", lambda port: True)
    with socket.create_server(("127.0.0.1", taken or 0)):
        assert server.start().port != taken


def test_it_starts_after_the_postmaster_was_killed(home: Path) -> None:
    server = EmbeddedServer(home)
    server.start()
    url = server.ensure_database("duebook")
    with psycopg.connect(url) as connection:
        connection.execute("create table t as select 1 as n")
    pid = server.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: not server.status().running)
    assert (server.data_directory / "postmaster.pid").exists()
    assert server.start().pid != pid
    with psycopg.connect(url) as connection:
        assert connection.execute("select n from t").fetchone() == (1,)


def test_a_stale_pid_that_is_another_process_by_now_does_not_hold_it_back(
    server: EmbeddedServer,
) -> None:
    pid_file = server.data_directory / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    owner = pid_file.stat()
    server.stop()
    # Of the same user: PostgreSQL itself takes such a process for a running postmaster.
    as_owner = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
    stranger = subprocess.Popen(
        ["sleep", "60"],
        **(as_owner if os.geteuid() == 0 else {}),  # type: ignore[call-overload]
    )
    try:
        pid_file.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
        os.chown(pid_file, owner.st_uid, owner.st_gid)
        assert not server.status().running
        status = server.start()
        assert status.running
        assert status.pid != stranger.pid
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_an_interrupted_initdb_is_done_again(home: Path) -> None:
    unfinished = home / "postgres" / "data.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    server = EmbeddedServer(home, durable=False)
    assert server.start().running
    assert not unfinished.exists()


def test_two_starts_at_once_make_one_server(home: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from duebook.db.embedded import EmbeddedServer;"
        "server = EmbeddedServer(Path(sys.argv[1]), durable=False);"
        "print(server.start().pid, server.ensure_database('duebook').rpartition('@')[2])"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(home)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "plugins")},
        )
        for _ in range(3)
    ]
    answers = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert len(set(answers)) == 1
    assert answers[0]


def test_two_homes_run_side_by_side(running: EmbeddedServer, home: Path) -> None:
    with EmbeddedServer(home, durable=False) as other:
        assert other.status().port != running.status().port
        assert (other.root / "password").read_text() != (running.root / "password").read_text()
        assert setting(other.url("postgres"), "port") != setting(running.url("postgres"), "port")
    other.destroy()
    assert running.status().running


def test_the_server_is_never_root_and_opens_nothing_to_others(running: EmbeddedServer) -> None:
    user = service_user(running.data_directory)
    process = psutil.Process(running.status().pid)
    assert process.uids().real == (user.uid if user else os.getuid()) != 0
    for directory in (running.root, running.root.parent, running.data_directory):
        assert directory.stat().st_mode & 0o007 == 0
    for name in ("password", "superuser_password"):
        assert (running.root / name).stat().st_uid == os.geteuid()


def test_it_runs_for_an_ordinary_user(running: EmbeddedServer) -> None:
    user = service_user(running.data_directory)
    if user is None:
        assert psutil.Process(running.status().pid).uids().real == os.getuid()
        return
    own = Path(tempfile.mkdtemp(prefix="duebook-ordinary-"))
    os.chown(own, user.uid, user.gid)
    # A fork, since the interpreter itself may lie where an ordinary user can't start it.
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(user.gid, user.gid, user.gid)
            os.setresuid(user.uid, user.uid, user.uid)
            ordinary = EmbeddedServer(own, durable=False)
            code = (
                0 if ordinary.start().running and setting(ordinary.url("postgres"), "port") else 2
            )
            ordinary.destroy()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert list(own.iterdir()) == []
    own.rmdir()


def test_data_of_another_major_version_is_refused(server: EmbeddedServer) -> None:
    server.stop()
    (server.data_directory / "PG_VERSION").write_text("17\n")
    with pytest.raises(ConfigurationError, match="made by PostgreSQL 17"):
        server.start()


def test_a_server_that_cannot_start_says_so_in_one_line(server: EmbeddedServer) -> None:
    server.stop()
    (server.data_directory / "local.conf").write_text("shared_buffers = 'no size'\n")
    with pytest.raises(UnavailableError, match=r"did not start: .*FATAL") as caught:
        server.start()
    assert "\n" not in str(caught.value)


def test_what_was_never_started_has_no_url(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path)
    with pytest.raises(UnavailableError, match="there is no embedded PostgreSQL"):
        server.url()
    server.stop()
    assert list(tmp_path.iterdir()) == []


def test_destroy_leaves_neither_process_nor_file(home: Path) -> None:
    server = EmbeddedServer(home, durable=False)
    pid = server.start().pid
    server.destroy()
    assert not [each for each in psutil.process_iter() if str(home) in " ".join(arguments(each))]
    assert pid is not None
    assert list(home.iterdir()) == []


def test_a_database_is_made_once_whatever_its_name(running: EmbeddedServer) -> None:
    for name in ("airflow", "airflow", 'odd "name" % of:one'):
        running.ensure_database(name)
    with psycopg.connect(running.url("postgres")) as connection:
        names = {row[0] for row in connection.execute("select datname from pg_database")}
    assert {"airflow", 'odd "name" % of:one'} <= names
