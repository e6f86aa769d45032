"""Looks at everything that a night depends on, and says in one line each what is well or not.

A check that can't be made is a finding that is not ok: silence never means health. A database that
is away leaves out what needs it, and the rest is still looked at.
"""

from __future__ import annotations

import asyncio
import importlib
import shutil
import zoneinfo
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg

from duebook.db.connect import NEWEST_MAJOR, OLDEST_MAJOR, describe, is_away
from duebook.db.migrate import ROLES, current_revision, head_revision
from duebook.db.objects import read_objects
from duebook.db.sql import query, sql_root
from duebook.domain.calendar import tzdb_version
from duebook.errors import DuebookError, UnavailableError
from duebook.services.receive import make_endpoint
from duebook.services.status import NEEDED_DAGS, AirflowProbe, dag_states
from duebook.services.witness import Witness, behind, compare
from duebook.services.zones import (
    ZONE_PROBES,
    Missing,
    differing_server_zones,
    missing_zones,
    newest_tzdb,
    older_tzdb,
)
from duebook.settlements.stores import StoreFactory, open_store

if TYPE_CHECKING:
    from duebook.channels.base import Channel
    from duebook.config import Config
    from duebook.connections import ConnectionSpec

Connect = Callable[[], psycopg.Connection[Any]]

MOST_SKEW: Final = timedelta(seconds=2)
LEAST_FREE_BYTES: Final = 1 << 30
VERIFY_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `remedy` is empty when it is ok."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        """`{name, ok, detail, remedy}`."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class Probes:
    """How the caller reaches what is outside the database.

    `environment` is the name that senders here run under. `connection` looks a connection id up
    (None: not defined; ConfigurationError: not readable). `channel` makes a channel by its name.
    `airflow` asks which DAGs are paused. `home` is where a local stack keeps its files, `witness`
    where the witness is, `stores` makes object stores. `clock` is this machine's.
    """

    environment: str
    connection: Callable[[str], ConnectionSpec | None]
    channel: Callable[[str], Channel]
    airflow: AirflowProbe | None = None
    home: Path | None = None
    witness: str | None = None
    stores: StoreFactory | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)  # noqa: TID251 (it is examined)


def doctor(connect: Connect, config: Config, probes: Probes) -> list[Finding]:
    """Every finding, in the order in which a person would repair things. Raises nothing."""
    findings = list(_database_findings(connect, probes))
    findings += _python_zones()
    findings += _connections(config, probes)
    findings += _endpoints(config, probes)
    findings += _channels(config, probes)
    findings += _look_ups(config)
    findings += _dags(probes)
    findings += _folders(config, probes)
    findings += _disk(probes)
    return findings


def report(findings: Sequence[Finding]) -> dict[str, Any]:
    """`{ok, findings: […], exit_code}`: 0 all well, 1 something is not, 3 the database is away."""
    away = any(each.name == "database" and not each.ok for each in findings)
    ok = all(each.ok for each in findings)
    return {
        "ok": ok,
        "findings": [each.to_json() for each in findings],
        "exit_code": 3 if away else 0 if ok else 1,
    }


def _database_findings(connect: Connect, probes: Probes) -> Iterable[Finding]:
    try:
        connection = connect()
    except DuebookError as error:
        yield Finding(
            "database",
            False,
            str(error),
            "start it (`duebook up`), or set DUEBOOK_DATABASE_URL to one that runs",
        )
        return
    with connection:
        yield from _guarded(connection, "database", _server(connection, probes))
        migrated = list(_guarded(connection, "migrations", _migrations(connection)))
        yield from migrated
        if not all(finding.ok for finding in migrated):
            return
        for name, checks in (
            ("objects", _objects(connection)),
            ("roles", _grants(connection)),
            ("login", _login(connection)),
            ("environment", _environment(connection, probes)),
            ("witness", _witness(connection, probes)),
            ("quiet hours", _quiet_hours(connection)),
            ("PostgreSQL time zones", _database_zones(connection, probes)),
            ("calendar", _calendar(connection)),
        ):
            yield from _guarded(connection, name, checks)


def _guarded(
    connection: psycopg.Connection[Any], name: str, checks: Iterable[Finding]
) -> Iterable[Finding]:
    """The findings of some checks; a query that fails is a finding too."""
    try:
        yield from checks
    except psycopg.Error as error:
        remedy = (
            "the database went away in between: run doctor again"
            if is_away(error) or connection.closed
            else "run `duebook migrate` as the owner of the database"
        )
        yield Finding(name, False, describe(error), remedy)


def _server(connection: psycopg.Connection[Any], probes: Probes) -> Iterable[Finding]:
    before = probes.clock()
    row = connection.execute(query("read_server")).fetchone()
    after = probes.clock()
    assert row is not None, "a select without from returns a row"
    now, version, name, login, _ = row
    major = connection.info.server_version // 10000
    yield Finding(
        "database",
        OLDEST_MAJOR <= major <= NEWEST_MAJOR,
        f"PostgreSQL {version}, database {name}, login {login}",
        ""
        if OLDEST_MAJOR <= major <= NEWEST_MAJOR
        else f"use PostgreSQL {OLDEST_MAJOR} to {NEWEST_MAJOR}",
    )
    skew = now - (before + (after - before) / 2)
    # The answer may have waited on either way: that much of the difference is not known.
    certain = max(abs(skew) - (after - before) / 2, timedelta(0))
    ok = certain <= MOST_SKEW
    yield Finding(
        "clock",
        ok,
        f"this machine and the database differ by {abs(skew).total_seconds():.3f} s",
        "" if ok else "let NTP set both clocks: leases and due times are the database's",
    )


def _migrations(connection: psycopg.Connection[Any]) -> Iterable[Finding]:
    have, want = current_revision(connection), head_revision()
    ok = have == want
    yield Finding(
        "migrations",
        ok,
        f"at {have or 'none'}" if ok else f"at {have or 'none'}, this version needs {want}",
        "" if ok else "run `duebook migrate`",
    )


def _objects(connection: psycopg.Connection[Any]) -> Iterable[Finding]:
    applied = dict(connection.execute(query("list_applied_objects")).fetchall())
    present = {(folder, name) for folder, name in connection.execute(query("list_objects_present"))}
    objects = read_objects(sql_root())
    gone = [
        each.path for each in objects if (each.path.partition("/")[0], each.name) not in present
    ]
    changed = [
        each.path
        for each in objects
        if each.path not in gone and applied.get(each.path) != each.sha256
    ]
    wrong = [f"{path} is missing" for path in gone] + [f"{path} is old" for path in changed]
    yield Finding(
        "objects",
        not wrong,
        f"{len(objects)} functions and views are current" if not wrong else _some(wrong),
        "" if not wrong else "run `duebook migrate`",
    )


def _grants(connection: psycopg.Connection[Any]) -> Iterable[Finding]:
    faults = [
        row[0] for row in connection.execute(query("find_grant_faults"), {"roles": list(ROLES)})
    ]
    yield Finding(
        "roles",
        not faults,
        "analysts read reports only, the receiver records receipts and opt-outs only"
        if not faults
        else _some(faults),
        "" if not faults else "run `duebook migrate`, and revoke what was granted by hand",
    )


def _login(connection: psycopg.Connection[Any]) -> Iterable[Finding]:
    faults = [row[0] for row in connection.execute(query("find_login_faults"))]
    yield Finding(
        "login",
        not faults,
        "may write what a night writes" if not faults else _some(faults),
        "" if not faults else "log in as the owner, or as a login that is granted duebook_app",
    )


def _environment(connection: psycopg.Connection[Any], probes: Probes) -> Iterable[Finding]:
    row = connection.execute(
        query("read_environment_state"), {"environment": probes.environment}
    ).fetchone()
    assert row is not None, "a select without from returns a row"
    _, name, is_test, refusal = row
    yield Finding(
        "environment",
        refusal is None,
        refusal or f"accepted as {name}{', a test database' if is_test else ''}",
        ""
        if refusal is None
        else f"if it may send, run `duebook restore accept {probes.environment}`",
    )


def _quiet_hours(connection: psycopg.Connection[Any]) -> Iterable[Finding]:
    row = connection.execute(query("read_quiet_hours_statement")).fetchone()
    assert row is not None, "a select without from returns a row"
    is_stated, count, live = row
    if is_stated:
        yield Finding("quiet hours", True, f"{count} stated" if count else "stated as none")
        return
    yield Finding(
        "quiet hours",
        not live,
        "not stated" + (f", and {_some(live)} may send at night" if live else "; nobody is live"),
        'state [[quiet_hours]] tables, or quiet_hours = "none", in duebook.toml and apply it'
        if live
        else "",
    )


def _witness(connection: psycopg.Connection[Any], probes: Probes) -> Iterable[Finding]:
    if probes.witness is None:
        unwitnessed = connection.execute(query("find_live_account")).fetchone()
        detail = "none: a database that is put back to an earlier state can't be seen"
        if unwitnessed is None:
            yield Finding("witness", True, detail + "; needed before an account goes live")
            return
        yield Finding(
            "witness",
            False,
            f"{detail}, and would send again what it sent since; {unwitnessed[0]} is live",
            "set DUEBOOK_WITNESS to a folder or URL that no restore of the database takes back",
        )
        return
    try:
        witness = Witness(probes.witness, probes.environment)
        witness.try_out()
        found = compare(connection, witness)
    except DuebookError as error:
        yield Finding("witness", False, str(error), "make it writable for every sender")
        return
    yield Finding(
        "witness",
        not found.lost,
        str(behind(found.lost))
        if found.lost
        else f"{probes.witness} can be written, and the database knows all that it holds",
        "run `duebook restore accept` once it is clear what was restored" if found.lost else "",
    )


def _database_zones(connection: psycopg.Connection[Any], probes: Probes) -> Iterable[Finding]:
    """PostgreSQL counts the days of reports in the zones of provider accounts, and nothing else by
    its own time zone data: there it must agree with Python's, elsewhere an older copy does no harm.
    """
    zones = [row[0] for row in connection.execute(query("list_zones_in_use"))]
    months = [probes.clock() + timedelta(days=30 * month) for month in range(-2, 13)]
    wrong = []
    for zone in zones:
        wrong += _disagreements(connection, zone, months)[:1]
    older = differing_server_zones(connection)
    detail = f"agrees with Python on {', '.join(zones) or 'UTC'}"
    if older:
        detail += f"; older than 2026f for {', '.join(older)}, where no report counts days"
    yield Finding(
        "PostgreSQL time zones",
        not wrong,
        detail if not wrong else _some(wrong),
        ""
        if not wrong
        else "update the time zone data of the PostgreSQL server: local days of reports are wrong "
        "until then (due times are computed in Python and are right)",
    )


def _disagreements(
    connection: psycopg.Connection[Any], zone: str, instants: Sequence[datetime]
) -> list[str]:
    found = _database_offsets(connection, zone, instants)
    if found is None:
        return [f"PostgreSQL does not know {zone}"]
    try:
        local = zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return [f"Python does not know {zone}"]
    faults = []
    for at, seconds in found.items():
        ours = int((at.astimezone(local).utcoffset() or timedelta()).total_seconds())
        if ours != seconds:
            faults.append(
                f"{zone} on {at:%Y-%m-%d}: PostgreSQL says {seconds / 3600:+g} h, "
                f"Python {ours / 3600:+g} h"
            )
    return faults


def _database_offsets(
    connection: psycopg.Connection[Any], zone: str, instants: Sequence[datetime]
) -> dict[datetime, int] | None:
    """Offsets in seconds, or None when PostgreSQL does not know the zone."""
    values = {"zone": zone, "instants": list(instants)}
    try:
        return dict(connection.execute(query("list_offsets"), values).fetchall())
    except psycopg.errors.InvalidParameterValue:
        return None


def _calendar(connection: psycopg.Connection[Any]) -> Iterable[Finding]:
    """What schedules and contacts name is looked at before anything of it is due."""
    newest = newest_tzdb(connection)
    refusal = None if newest is None else older_tzdb(newest[0])
    yield Finding(
        "calendar",
        refusal is None,
        refusal or f"no process here has newer time zone data than {tzdb_version()}",
        "" if newest is None or refusal is None else f"install the tzdata that {newest[1]} has",
    )
    found = missing_zones(connection)
    yield _known(
        "zones of schedules",
        found.of_schedules,
        "their reminders are held: put them again with --replace and a zone that is known, or "
        "install a tzdata that has it",
    )
    yield _known(
        "zones of contacts",
        found.of_contacts,
        "their quiet hours can't be kept, so their notices are held: import them again with a zone "
        "that is known",
    )
    yield _known(
        "holidays of schedules",
        found.holidays,
        "their dates can't be computed: put them again with --replace and a calendar that is known",
    )


def _known(name: str, missing: Sequence[Missing], remedy: str) -> Finding:
    if not missing:
        return Finding(name, True, "all are known")
    return Finding(name, False, f"unknown: {_some([str(each) for each in missing])}", remedy)


def _python_zones() -> Iterable[Finding]:
    wrong = []
    for zone, at, hours in ZONE_PROBES:
        try:
            offset = at.astimezone(zoneinfo.ZoneInfo(zone)).utcoffset()
        except zoneinfo.ZoneInfoNotFoundError:
            wrong.append(f"{zone} is unknown")
            continue
        seconds = int((offset or timedelta()).total_seconds())
        if seconds != hours * 3600:
            wrong.append(
                f"{zone} on {at:%Y-%m-%d} is {seconds / 3600:+g} h, should be {hours:+d} h"
            )
    folders = ", ".join(zoneinfo.TZPATH)
    tzdata = importlib.import_module("tzdata")
    detail = f"tzdata {tzdata.IANA_VERSION} of the pinned package"
    if folders:
        wrong.insert(0, f"the system's copy in {folders} is read before the pinned package")
    yield Finding(
        "Python time zones",
        not wrong,
        detail if not wrong else _some(wrong),
        ""
        if not wrong
        else "set PYTHONTZPATH to nothing (`PYTHONTZPATH=`) in every process that imports duebook"
        if folders
        else "install a newer tzdata",
    )


def _connections(config: Config, probes: Probes) -> Iterable[Finding]:
    wanted: dict[str, list[str]] = {}
    for name, account in config.provider_accounts.items():
        if account.connection:
            wanted.setdefault(account.connection, []).append(f"provider account {name}")
    used = {kind.channel for kind in config.kinds.values() if kind.enabled}
    for name, channel in config.channels.items():
        if channel.connection and name in used:
            wanted.setdefault(channel.connection, []).append(f"channel {name}")
    for connection_id, users in sorted(wanted.items()):
        yield _connection(connection_id, ", ".join(users), probes)


def _connection(connection_id: str, users: str, probes: Probes) -> Finding:
    name = f"connection {connection_id}"
    remedy = (
        f"define AIRFLOW_CONN_{connection_id.upper()} or the Airflow connection {connection_id}"
    )
    try:
        found = probes.connection(connection_id)
    except DuebookError as error:
        return Finding(name, False, str(error), remedy)
    if found is None:
        return Finding(name, False, f"not defined; {users} needs it", remedy)
    return Finding(name, True, f"defined, for {users}")


def _endpoints(config: Config, probes: Probes) -> Iterable[Finding]:
    """An endpoint without its connection is one that is not used: its events are answered 503."""
    for name, block in config.webhooks.items():
        told, remedy = f"webhook endpoint {name}", f"correct the connection {block.connection}"
        try:
            if probes.connection(block.connection) is None:
                detail = f"not used: its connection {block.connection} is not defined"
            else:
                make_endpoint(name, block, probes.connection)
                detail = f"can verify the events of {block.provider_account}"
        except DuebookError as error:
            yield Finding(told, False, str(error), remedy)
        else:
            yield Finding(told, True, detail)


def _channels(config: Config, probes: Probes) -> Iterable[Finding]:
    for name in sorted({kind.channel for kind in config.kinds.values() if kind.enabled}):
        yield _channel(name, probes)


def _look_ups(config: Config) -> Iterable[Finding]:
    from duebook.channels.registry import make_look_up

    for name, block in config.channels.items():
        look_up = make_look_up(block)
        if look_up is None:
            continue
        try:
            yield Finding(f"look-up {name}", True, look_up.verify())
        except DuebookError as error:
            remedy = f"correct relay_log of [channels.{name}]; until then a person ends doubts"
            yield Finding(f"look-up {name}", False, str(error), remedy)


def _channel(name: str, probes: Probes) -> Finding:
    remedy = f"correct [channels.{name}] of duebook.toml, or its connection and login"
    try:
        channel = probes.channel(name)
        detail = asyncio.run(_verify(channel))
    except TimeoutError:
        detail = f"no answer in {VERIFY_SECONDS} s"
        return Finding(f"channel {name}", False, detail, "see that its host can be reached")
    except UnavailableError as error:
        return Finding(f"channel {name}", False, str(error), "see that its host can be reached")
    except DuebookError as error:
        return Finding(f"channel {name}", False, str(error), remedy)
    return Finding(f"channel {name}", True, detail)


async def _verify(channel: Channel) -> str:
    async with asyncio.timeout(VERIFY_SECONDS):
        await channel.open()
        try:
            return await channel.verify()
        finally:
            await channel.close()


def _dags(probes: Probes) -> Iterable[Finding]:
    if probes.airflow is None:
        yield Finding("Airflow", True, "not asked: no Airflow is known here")
        return
    states = dag_states(probes.airflow)
    if not states.known:
        reason = states.reason or "no answer"
        yield Finding(
            "Airflow", False, reason, "start it (`duebook up`), or look at its API server"
        )
        return
    missing = [name for name in NEEDED_DAGS if name not in states.paused]
    paused = sorted(name for name, is_paused in states.paused.items() if is_paused)
    if missing:
        remedy = "look at Airflow's import errors and at its DAGs folder"
        yield Finding("DAGs", False, f"unknown to Airflow: {', '.join(missing)}", remedy)
    if paused:
        remedy = f"run `airflow dags unpause {paused[0]}`, or switch them on in the UI"
        yield Finding("DAGs", False, f"paused, so they never run: {', '.join(paused)}", remedy)
    if not missing and not paused:
        yield Finding("DAGs", True, f"{len(states.paused)} known, none paused")


def _folders(config: Config, probes: Probes) -> Iterable[Finding]:
    for name, account in config.provider_accounts.items():
        if account.folder is None:
            continue
        label = f"folder of {name}"
        remedy = f"make it, readable for this user, or correct [provider_accounts.{name}]"
        try:
            found = open_store(account.folder, probes.stores).names(account.pattern)
        except DuebookError as error:
            yield Finding(label, False, str(error), remedy)
        else:
            told = f"{account.folder}, {len(found)} files like {account.pattern}"
            yield Finding(label, True, told)


def _disk(probes: Probes) -> Iterable[Finding]:
    if probes.home is None:
        return
    place = next((p for p in (probes.home, *probes.home.parents) if p.exists()), None)
    if place is None:
        return
    usage = shutil.disk_usage(place)
    ok = usage.free >= LEAST_FREE_BYTES
    detail = f"{usage.free / (1 << 30):.1f} GiB free for {probes.home}"
    yield Finding("disk", ok, detail, "" if ok else "make room: the database stops when it is full")


def _some(faults: Sequence[str]) -> str:
    """The first three, and how many more."""
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    return "; ".join(faults[:3]) + more
