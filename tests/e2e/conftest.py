"""The one stack of all end-to-end tests; see `tests.e2e.house`.

The tests run in the order of their files: each leaves the house as it found it, nothing due and
nothing in a batch. The last one drops Airflow's database.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from duebook.airflow.api import AirflowApi
from duebook.airflow.stack import LocalStack
from duebook.config import load_config
from duebook.db.connect import DATABASE, connect_url
from duebook.db.embedded import EmbeddedServer
from duebook.db.migrate import migrate
from duebook.demo.books import Books, write_books
from duebook.demo.run import CONFIG_TEMPLATE, connections
from duebook.demo.servers import STRIPE_KEY, Servers, running_servers
from duebook.services.apply import apply_config
from duebook.services.imports import import_contacts, import_ledger
from tests.conftest import ENVIRONMENT, Databases
from tests.e2e.house import (
    NIGHT,
    RUN_TIMEOUT_S,
    House,
    counts_of,
    pace_file,
    reconciliations,
    wait_until,
)
from tests.e2e.leaks import Secrets
from tests.stripe_stub.server import Failure, StripeStub

HOME_PREFIX = "duebook-e2e-"
REFUSED = "no-such-mailbox@payers.example"
TROUBLED = ("overloaded", "limited", "hanging_up")

# Added to the demo's own file: a shop whose files the tests write, later accounts in trouble.
FURTHER_ACCOUNTS = """
[provider_accounts.shop]
provider = "csv"
mode = "live"
notify_from = {notify_from}
settle_within = "P30D"
zone = "UTC"
folder = "{shop}"

[provider_accounts.shop.columns]
entry_id = "id"
type = "type"
amount = "gross"
currency = "currency"
payment_ref = "order"
occurred_at = "at"

[provider_accounts.shop.types]
charge = "charge"
refund = "refund"

[webhooks.stripe]
provider_account = "stripe"
scheme = "stripe"
connection = "webhook_secret"
"""
WEBHOOK_SECRET = "whsec_end_to_end"
TROUBLED_ACCOUNTS = """
[provider_accounts.garbled]
provider = "csv"
mode = "live"
settle_within = "P30D"
zone = "UTC"
folder = "{garbled}"

[provider_accounts.garbled.columns]
entry_id = "id"
amount = "gross"
currency = "currency"
occurred_at = "at"

[provider_accounts.unconnected]
provider = "stripe"
mode = "live"
settle_within = "P30D"
zone = "UTC"
connection = "forgotten"

[kinds.unwritten]
enabled = true
channel = "email"
notify_after = "PT0S"
give_up_after = "P7D"
supersedes = false
catch_up = "all"
catch_up_window = "P3D"
max_occurrences = 100
spread_per_minute = 600
max_tries = 8
max_claims = 20
"""
TROUBLED_STRIPE = """
[provider_accounts.{name}]
provider = "stripe"
mode = "live"
settle_within = "P30D"
zone = "UTC"
connection = "{name}"
"""
LEDGER = """\
account_id,payment_id,reference,amount,currency,status,expected_at,provider_account
anna,shop-1,O-1,81234.57,EUR,captured,{at},shop
bert,shop-2,O-2,82345.68,EUR,captured,{at},shop
cleo,shop-3,O-3,83456.79,EUR,captured,{at},shop
dora,shop-4,O-4,84567.81,EUR,captured,{at},shop
"""
CONTACTS = f"""\
account_id,channel,address,zone,locale,region
anna,email,anna.private@payers.example,UTC,en,NL
bert,email,bert.private@payers.example,UTC,en,NL
cleo,email,{REFUSED},UTC,en,NL
dora,email,dora.private@payers.example,UTC,en,NL
"""
# The bad row shows its value in the way that a log would have to be searched for.
SHOP_FILE = """\
id,type,order,gross,currency,at
e-1,charge,O-1,81234.57,EUR,{day}T10:00:05
e-2,charge,O-2,82345.68,EUR,{day}T11:00:05
e-3,charge,O-3,83456.79,EUR,{day}T12:00:05
e-4,charge,O-4,"84567,81",EUR,{day}T13:00:05
"""
GARBLED_FILE = """\
id,gross,currency,at
Zürich-1,81234.57,EUR,2026-01-04T10:00:05
"""
TRIED = {"success", "failed", "up_for_retry"}


@pytest.fixture(scope="session")
def house(databases: Databases) -> Iterator[House]:
    """Everything is up, the books are in, and no night was yet."""
    clear_leftovers()
    home = Path(tempfile.mkdtemp(prefix=f"{HOME_PREFIX}{os.getpid()}-"))
    with contextlib.ExitStack() as ends:
        ends.callback(shutil.rmtree, home, ignore_errors=True)
        server = EmbeddedServer(home, durable=False)
        ends.callback(server.destroy)
        server.start()
        ends.callback(LocalStack(home, metadata_url="").stop, drain_s=5)
        troubled = {name: ends.enter_context(StripeStub()) for name in TROUBLED}
        database_url = server.ensure_database(DATABASE)
        now = clock(database_url)
        servers = ends.enter_context(
            running_servers(
                home,
                (now - timedelta(days=5)).isoformat(),
                refuse=[REFUSED],
                pace=pace_file(home),
            )
        )
        house = make_house(home, server, databases.create(), servers, troubled, now)
        house.stack().start()
        yield house


def make_house(
    home: Path,
    server: EmbeddedServer,
    metadata_url: str,
    servers: Servers,
    troubled: dict[str, StripeStub],
    now: datetime,
) -> House:
    """The books and Duebook's database; Airflow's is made meanwhile, since it takes longest."""
    shop, garbled = home / "shop", home / "garbled"
    shop.mkdir()
    garbled.mkdir()
    config_file = home / "duebook.toml"
    known = {
        **connections(servers),
        "webhook_secret": json.dumps({"conn_type": "http", "password": WEBHOOK_SECRET}),
        **{
            name: json.dumps({"conn_type": "http", "host": s.address, "password": STRIPE_KEY})
            for name, s in troubled.items()
        },
    }
    house = House(
        home=home,
        server=server,
        database_url=server.url(DATABASE),
        metadata_url=metadata_url,
        config_file=config_file,
        connections=known,
        servers=servers,
        troubled=troubled,
        books=None,  # type: ignore[arg-type]
        shop=shop,
        garbled=garbled,
        secrets=Secrets(),
    )
    beside = threading.Thread(target=house.stack().prepare_database, name="airflow db migrate")
    beside.start()
    try:
        house.books = fill(house, now)
    finally:
        beside.join()
    return house


def fill(house: House, now: datetime) -> Books:
    """Payments at the providers, the books of all, the configuration."""
    migrate(house.database_url)
    with house.connect() as conn:
        conn.execute("select duebook.accept_environment(%s, true, 'pytest')", [ENVIRONMENT])
    books = write_books(house.home, house.servers, now, lambda *_: None)
    write_config(house, now, FURTHER_ACCOUNTS)
    apply_config(house.connect, load_config(house.config_file), by="pytest")
    at = (now - timedelta(days=2)).isoformat(timespec="seconds")
    folder = house.home / "books"
    (folder / "ledger_shop.csv").write_text(LEDGER.format(at=at), encoding="utf-8")
    (folder / "contacts_shop.csv").write_text(CONTACTS, encoding="utf-8")
    for ledger in (*books.ledgers, folder / "ledger_shop.csv"):
        report = import_ledger(house.connect, ledger, load_config(house.config_file))
        assert report.quarantined == 0
        house.secrets.add_ledger(ledger)
    for contacts in sorted(folder.glob("contacts_*.csv")):
        assert import_contacts(house.connect, contacts).quarantined == 0
        house.secrets.add_contacts(contacts)
    return books


def write_config(house: House, now: datetime, further: str) -> None:
    """The demo's duebook.toml with further accounts; a task reads it when it starts."""
    text = CONFIG_TEMPLATE.read_text(encoding="utf-8") + further
    for name, value in {
        "{inbox}": str(house.home / "inbox"),
        "{shop}": str(house.shop),
        "{garbled}": str(house.garbled),
        "{notify_from}": (now - timedelta(days=30)).isoformat(timespec="seconds"),
    }.items():
        text = text.replace(name, value)
    house.config_file.write_text(text, encoding="utf-8")


@pytest.fixture(scope="session")
def first_night(house: House) -> dict[str, dict[str, Any]]:
    """The counts of the first night over all accounts, once its mails are out.

    It is triggered twice at once under one run id, and once more under another.
    """
    answers: list[bool] = []

    def trigger(run_id: str) -> None:
        with house.stack().api() as api:
            answers.append(api.trigger(NIGHT, conf={"account": "all"}, run_id=run_id).created)

    with house.stack().api() as api:
        api.set_paused(NIGHT, paused=False)
        callers = [
            threading.Thread(target=trigger, args=[run_id])
            for run_id in ("close-2026-11", "close-2026-11", "twin")
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert sorted(answers) == [False, True, True], "the same run id makes one run"
        both = [ended(api, run_id) for run_id in ("close-2026-11", "twin")]
    house.settle()
    first, second = both if total(both[0], "entries_new") else reversed(both)
    assert total(second, "entries_new") == 0
    assert total(second, "ledger_changes") == 0
    assert total(second, "intents") == 0
    house.secrets.add_amounts(
        amount
        for row in house.rows(
            "select gross_minor, fee_minor, net_minor from duebook.settlement_entry"
        )
        for amount in row
    )
    return first


@dataclass(frozen=True, slots=True)
class TroubledNight:
    """What a night over accounts in trouble left, as it stood after the first try of each."""

    states: Mapping[str, str]
    logs: Mapping[str, list[dict[str, Any]]]
    counts: Mapping[str, dict[str, Any]]
    failures: Sequence[Failure]


@pytest.fixture(scope="session")
def troubled_night(house: House, first_night: dict[str, dict[str, Any]]) -> TroubledNight:
    """A night with everything wrong that a provider can do, and sweeps that can't send all.

    A row that can't be read among good ones, a file that can't, a missing connection, providers
    that answer 500 and 429 and hang up; a recipient that the mail server refuses, and a notice for
    which there is no template.
    """
    del first_night
    write_config(
        house,
        clock(house.database_url),
        FURTHER_ACCOUNTS
        + TROUBLED_ACCOUNTS
        + "".join(TROUBLED_STRIPE.format(name=name) for name in TROUBLED),
    )
    apply_config(house.connect, load_config(house.config_file), by="pytest")
    day = clock(house.database_url) - timedelta(days=1)
    (house.shop / "first.csv").write_text(SHOP_FILE.format(day=day.date()), encoding="utf-8")
    (house.garbled / "codepage.csv").write_bytes(GARBLED_FILE.encode("cp1252"))
    failures = [
        Failure("500", times=10_000),
        Failure("429", times=10_000, retry_after="3600"),
        Failure("drop", path="/v1/balance_transactions", times=10_000),
    ]
    for name, failure in zip(TROUBLED, failures, strict=True):
        house.troubled[name].fail(failure)
    make_unwritable_notice(house)
    with house.stack().api() as api:
        api.trigger(NIGHT, conf={"account": "all"}, run_id="troubled")

        def tried() -> dict[str, dict[str, Any]]:
            tasks = reconciliations(api, "troubled")
            return tasks if all(t["state"] in TRIED for t in tasks.values()) else {}

        wait_until(tried, "each account was tried", RUN_TIMEOUT_S)
        tasks = tried()
        return TroubledNight(
            states={account: task["state"] for account, task in tasks.items()},
            logs={
                account: api.task_log(NIGHT, "troubled", "reconcile", 1, task["map_index"])
                for account, task in tasks.items()
            },
            counts=counts_of(api, "troubled"),
            failures=failures,
        )


def make_unwritable_notice(house: House) -> None:
    """A due notice of a kind that has no template: the copy of one that was sent."""
    house.rows(
        """
        with made as (
            insert into duebook.intent (
                account_id, operation_key, kind, subject, payment_id, channel, notify_at,
                give_up_at, provider_account, run_id, change_id, ownership
            )
            select
                account_id, replace(operation_key, 'payment_settled:', 'unwritten:'), 'unwritten',
                subject, payment_id, channel, notify_at, give_up_at, provider_account, run_id,
                change_id, ownership
            from duebook.intent
            where kind = 'payment_settled'
            order by intent_id
            limit 1
            returning *
        )
        insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
        select account_id, intent_id, clock_timestamp(), kind, channel, give_up_at from made
        returning intent_id
        """
    )


def ended(api: AirflowApi, run_id: str) -> dict[str, dict[str, Any]]:
    assert api.wait_for_run(NIGHT, run_id, timeout_s=RUN_TIMEOUT_S) == "success"
    return counts_of(api, run_id)


def total(counts: dict[str, dict[str, Any]], name: str) -> int:
    return sum(int(each[name]) for each in counts.values())


def clock(database_url: str) -> datetime:
    """The clock that decides what is due."""
    with connect_url(database_url, autocommit=True) as conn:
        row = conn.execute("select clock_timestamp()").fetchone()
    assert row is not None
    now: datetime = row[0]
    return now


def clear_leftovers() -> None:
    """End what a killed session left, of this user's own."""
    me = psutil.Process().username()
    for home in Path(tempfile.gettempdir()).glob(f"{HOME_PREFIX}*-*"):
        pid = home.name.removeprefix(HOME_PREFIX).split("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)) and home.owner() == me:
            with contextlib.suppress(Exception):
                LocalStack(home, metadata_url="").stop(drain_s=0)
                EmbeddedServer(home).destroy()
            shutil.rmtree(home, ignore_errors=True)
