"""`duebook demo`: nights on the real processes, as an engineer would run them.

Real PostgreSQL, the real Airflow with its LocalExecutor, Stripe through its own library, an Adyen
report in a folder, a mail server. Every number printed is read back from where it ended: Airflow's
return values, Duebook's reports, the mail server's own count. A number that is not what the demo
promises fails it.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row
from rich import box
from rich.console import Console
from rich.table import Table

from duebook.airflow.api import AirflowApi
from duebook.airflow.local import local_stack
from duebook.airflow.stack import LocalStack
from duebook.db.connect import connect, ensure_database_url
from duebook.db.embedded import EmbeddedServer
from duebook.db.sql import query
from duebook.demo.books import Books, refund_once_more, write_books
from duebook.demo.servers import (
    MAIL_LOGIN,
    MAIL_PASSWORD,
    STRIPE_KEY,
    Servers,
    running_servers,
)
from duebook.errors import DuebookError
from duebook.services.apply import apply_config
from duebook.services.explain import explain
from duebook.services.imports import import_contacts, import_ledger
from duebook.services.operate import load_configuration, migrate_database
from duebook.settings import Settings
from duebook.terminal import progress, render_explain

NIGHT_TIMEOUT_S = 180.0
DRAIN_TIMEOUT_S = 180.0
POLL_S = 0.25
CONFIG_TEMPLATE = Path(__file__).with_name("duebook.toml")


class DemoError(DuebookError):
    """The demo did not end as it should."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Night:
    """One run of the nightly DAG: the counts of each provider account, and the mails after it."""

    title: str
    accounts: Mapping[str, Mapping[str, Any]]
    mails: int

    def total(self, name: str) -> int:
        return sum(int(counts[name]) for counts in self.accounts.values())

    def to_json(self) -> dict[str, Any]:
        return {"title": self.title, "accounts": dict(self.accounts), "mails": self.mails}


@dataclass(slots=True)
class Demo:
    """What the steps share."""

    settings: Settings
    console: Console
    servers: Servers
    started: float = field(default_factory=time.monotonic)

    @property
    def config_file(self) -> Path:
        return config_file_of(self.settings.home)

    def say(self, text: str) -> None:
        """One line with the seconds since the start; markup in `text` is ours, keys are escaped."""
        self.console.print(
            f"[dim]{time.monotonic() - self.started:5.0f} s[/dim]  {text}",
            emoji=False,
            soft_wrap=True,
        )

    def connect(self) -> psycopg.Connection[Any]:
        return connect(self.settings, autocommit=True)

    def rows(self, name: str, **values: Any) -> list[dict[str, Any]]:
        with self.connect() as conn:
            return conn.cursor(row_factory=dict_row).execute(query(name), values).fetchall()


def run_demo(settings: Settings, console: Console, *, keep: bool = False) -> dict[str, Any]:
    """Run it in a home of its own under the settings' home; `keep` leaves the stack running.

    Raises DemoError when a number is not what it promises, UnavailableError when a process does
    not start.
    """
    started = time.monotonic()
    home = settings.home / "demo"
    own = settings.model_copy(
        update={
            "home": home,
            "database_url": None,
            "environment": "demo",
            "config_file": config_file_of(home),
        }
    )
    clear(own)
    home.mkdir(parents=True)
    server = EmbeddedServer(home)
    stack: LocalStack | None = None
    try:
        console.print("starting PostgreSQL, two Stripes and a mail server")
        url = ensure_database_url(own)
        now = database_clock(own)
        with running_servers(home, (now - timedelta(days=5)).isoformat()) as servers:
            demo = Demo(own, console, servers, started)
            stack = local_stack(own, url, connections=connections(servers))
            document = tell(demo, stack, now)
    finally:
        if not keep:
            if stack is not None:
                stack.stop()
            server.stop()
    demo.say("[green]done[/green]; " + ("left running" if keep else "everything is stopped"))
    return {**document, "seconds": round(time.monotonic() - started, 1), "home": str(home)}


def tell(demo: Demo, stack: LocalStack, now: datetime) -> dict[str, Any]:
    """Everything between starting and stopping; returns what was shown."""
    with preparing(stack, demo):
        books = prepare(demo, now)
    demo.say("starting Airflow: api-server, scheduler, dag-processor, triggerer")
    login = stack.start()
    demo.say(f"Airflow is up at {login.url}")
    with stack.api() as api:
        api.set_paused("nightly_reconciliation", paused=False)
        first = night(demo, api, "first night")
        expect(first.mails > 0, "the first night sent no mail")
        second = night(demo, api, "second night, same input")
        expect(second.total("ledger_changes") == 0, "the second night changed something")
        expect(second.mails == 0, "the second night sent mail")
        waiting = show_waiting(demo, books)
        refund_once_more(books, demo.servers)
        third = night(demo, api, "third night, one more refund", account="stripe")
        expect(third.total("ledger_changes") == 1, "the second refund was not one change")
    superseded = show_superseded(demo, books)
    outcomes = show_outcomes(demo, (first, second, third))
    story = explain(demo.connect, books.twice_refunded).to_json()
    demo.console.rule(f"duebook explain {books.twice_refunded}")
    render_explain(story, demo.console)
    return {
        "nights": [each.to_json() for each in (first, second, third)],
        "waiting": waiting,
        "superseded": superseded,
        "outcomes": outcomes,
        "mails": demo.servers.mails_received(),
    }


@contextmanager
def preparing(stack: LocalStack, demo: Demo) -> Iterator[None]:
    """Make Airflow's metadata database beside other work: it takes the longest of all."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            stack.prepare_database()
        except BaseException as error:
            failures.append(error)

    worker = threading.Thread(target=work, name="airflow db migrate")
    worker.start()
    try:
        yield
    finally:
        demo.say("making Airflow's metadata database")
        worker.join()
    if failures:
        raise failures[0]


def prepare(demo: Demo, now: datetime) -> Books:
    """Duebook's database, the providers' payments, the books and the contacts."""
    migrate_database(demo.settings)
    with progress(demo.console) as advance:
        books = write_books(demo.settings.home, demo.servers, now, advance)
    template = CONFIG_TEMPLATE.read_text(encoding="utf-8")
    demo.config_file.write_text(
        template.replace("{inbox}", str(books.inbox)).replace(
            "{notify_from}", (now - timedelta(days=30)).isoformat(timespec="seconds")
        ),
        encoding="utf-8",
    )
    config = load_configuration(demo.settings)
    apply_config(demo.connect, config, by=demo.settings.operator)
    booked = [import_ledger(demo.connect, path, config) for path in books.ledgers]
    contacts = [import_contacts(demo.connect, path) for path in books.contacts]
    demo.say(
        f"imported {sum(r.added for r in booked)} booked payments "
        f"and {sum(r.added for r in contacts)} contacts"
    )
    return books


def night(demo: Demo, api: AirflowApi, title: str, *, account: str = "all") -> Night:
    """Trigger the nightly DAG, wait for it, then for the sweeps that follow by themselves."""
    mails_before = demo.servers.mails_received()
    run = api.trigger("nightly_reconciliation", conf={"account": account})
    demo.say(f"[bold]{title}[/bold]: triggered nightly_reconciliation ({run.run_id})")
    state = api.wait_for_run("nightly_reconciliation", run.run_id, timeout_s=NIGHT_TIMEOUT_S)
    expect(state == "success", f"the nightly run {run.run_id} ended {state}")
    accounts = {
        str(counts["provider_account"]): counts
        for instance in api.task_instances("nightly_reconciliation", run.run_id)
        if instance["task_id"] == "reconcile"
        and (
            counts := api.return_value(
                "nightly_reconciliation", run.run_id, "reconcile", instance["map_index"]
            )
        )
    }
    until(lambda: open_work(demo) == 0, DRAIN_TIMEOUT_S, "the sweeps do not end what is due")
    done = Night(title, accounts, demo.servers.mails_received() - mails_before)
    show_night(demo, done)
    return done


def open_work(demo: Demo) -> int:
    """Rows that are due now, or that a batch holds."""
    return int(demo.rows("count_open_work")[0]["open_work"])


def until(condition: Callable[[], bool], timeout_s: float, failure: str) -> None:
    """Wait for a condition; raises DemoError when it does not come about in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            raise DemoError(failure)
        time.sleep(POLL_S)


def show_night(demo: Demo, done: Night) -> None:
    """The counts of each provider account, its discrepancies and its batches."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("account")
    for column in ("entries", "new", "changed", "matched", "pending", "changes", "notices"):
        table.add_column(column, justify="right")
    for name, counts in sorted(done.accounts.items()):
        read = sum(counts[f"entries_{kind}"] for kind in ("new", "changed", "unchanged"))
        shown = ("entries_new", "entries_changed", "matched", "pending", "ledger_changes")
        cells = [read, *(counts[key] for key in shown), counts["intents"]]
        table.add_row(name, *(str(cell) for cell in cells))
    demo.console.print(table)
    batches: dict[str, dict[str, int]] = {}
    for row in demo.rows("count_batches"):
        batches.setdefault(row["provider_account"], {})[row["status"]] = row["number"]
    for name, counts in sorted(done.accounts.items()):
        demo.console.print(
            f"  {name}: batches: {listed(batches.get(name, {}))}; "
            f"differences: {listed(counts['discrepancies'])}",
            emoji=False,
            soft_wrap=True,
        )
    demo.console.print(
        f"  mails delivered, by the mail server's own count: [bold]{done.mails}[/bold]\n"
    )


def show_waiting(demo: Demo, books: Books) -> dict[str, Any]:
    """A notice that is promised for later: there is a row in the database, and nothing else."""
    notices = demo.rows("list_notices_of_payment", payment_id=books.twice_refunded)
    waiting = [row for row in notices if row["state"] == "scheduled"]
    expect(len(waiting) == 1, "no notice waits for its time")
    demo.say(
        f"waits until {waiting[0]['due_at']:%Y-%m-%d %H:%M} UTC (notify_after = P7D):\n"
        f"         {waiting[0]['operation_key']}"
    )
    return {"operation_key": waiting[0]["operation_key"], "due_at": str(waiting[0]["due_at"])}


def show_superseded(demo: Demo, books: Books) -> dict[str, Any]:
    """The same notice after newer evidence: it ended unsent, the newer one waits instead."""
    notices = demo.rows("list_notices_of_payment", payment_id=books.twice_refunded)
    ended = [row for row in notices if row["reason"] == "superseded"]
    expect(len(ended) == 1, "the older refund notice was not superseded")
    demo.say(f"superseded by the second refund:\n         {ended[0]['operation_key']}")
    return {"operation_key": ended[0]["operation_key"], "reason": "superseded"}


def show_outcomes(demo: Demo, nights: tuple[Night, ...]) -> dict[str, int]:
    """How everything ended; as many sent as the mail server took."""
    outcomes = {
        f"{row['result']} {row['reason']}".strip(): int(row["number"])
        for row in demo.rows("count_outcomes")
    }
    demo.say(f"outcomes: {listed(outcomes)}")
    mails = sum(each.mails for each in nights)
    expect(
        outcomes.get("sent", 0) == mails == demo.servers.mails_received(),
        f"{outcomes.get('sent', 0)} notices ended sent, but {mails} mails were delivered",
    )
    return outcomes


def connections(servers: Servers) -> dict[str, str]:
    """The Airflow connections of the demo, as JSON."""

    def stripe(address: str) -> str:
        return json.dumps({"conn_type": "http", "host": address, "password": STRIPE_KEY})

    return {
        "demo_stripe": stripe(servers.stripe),
        "demo_localstripe": stripe(servers.localstripe),
        "demo_smtp": json.dumps(
            {
                "conn_type": "smtp",
                "host": "127.0.0.1",
                "port": servers.mail_port,
                "login": MAIL_LOGIN,
                "password": MAIL_PASSWORD,
            }
        ),
    }


def clear(settings: Settings) -> None:
    """End and remove what an earlier demo left in this home."""
    LocalStack(settings.home, metadata_url="").stop()
    EmbeddedServer(settings.home).destroy()
    shutil.rmtree(settings.home, ignore_errors=True)


def listed(counts: Mapping[str, int]) -> str:
    """`3 matched, 1 pending`, without what is 0."""
    return ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "none"


def expect(holds: bool, failure: str) -> None:
    """Raise DemoError when what the demo promises does not hold."""
    if not holds:
        raise DemoError(failure)


def config_file_of(home: Path) -> Path:
    """Where the demo keeps its duebook.toml."""
    return home / "duebook.toml"


def database_clock(settings: Settings) -> datetime:
    """The clock that decides what is due."""
    with connect(settings, autocommit=True) as conn:
        (now,) = conn.execute(query("read_clock")).fetchall()[0]
    return datetime.fromisoformat(now.isoformat())
