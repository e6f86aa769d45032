"""Each process of Airflow is killed while notices go out: none is lost, and none is sent twice.

Counted by the mail server's own log. Every payment has an address of its own, so that the log
tells which of them were told, and how often.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from duebook.airflow.api import FINISHED_STATES, AirflowApi
from duebook.demo.servers import STRIPE_KEY
from duebook.services.operate import reconcile_account
from duebook.services.resolve import Resolution, resolve
from duebook.settings import Settings
from duebook.settlements.stripe_api import make_stripe_client
from tests.conftest import ENVIRONMENT
from tests.e2e.conftest import WEBHOOK_SECRET, clock
from tests.e2e.house import (
    NIGHT,
    RUN_TIMEOUT_S,
    SWEEP,
    House,
    SendingTask,
    signal_all,
    the_one_clear_line,
    wait_until,
)
from tests.web.receiving import event, stripe_headers

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

EVENTS, HOUSEKEEPING = "provider_events", "housekeeping"
WINDOW = 20
ANSWER_AFTER_S = 4.0
# Batches that take some seconds, windows that are a small part of one, leases that end soon. The
# mail server serves one after another: the time-out is longer than all connections together wait.
SWEEPS = {
    "window_messages = 100": f"window_messages = {WINDOW}",
    "io_timeout_seconds = 20": "io_timeout_seconds = 12",
    "batch_size = 500": "batch_size = 60",
    "lease_seconds = 120": "lease_seconds = 30",
}


@pytest.fixture(scope="module")
def small_sweeps(house: House) -> Iterator[None]:
    """Sweeps that can be met in the middle."""
    house.reconfigure(SWEEPS)
    yield
    house.reconfigure({new: old for old, new in SWEEPS.items()})


@dataclass
class Story:
    """Payments that were settled at once, each told to an address of its own."""

    house: House
    name: str
    count: int
    killed: set[int] = field(default_factory=set)
    """The batches that killed senders held."""

    def told(self) -> Counter[str]:
        """How often each payment was told, by the mail server's log."""
        addresses = (message["rcpt_to"][0] for message in self.house.messages())
        mine = (each.partition("@")[0] for each in addresses if each.startswith(f"{self.name}-"))
        return Counter(mine)

    def wait_for_mails(self, count: int) -> None:
        wait_until(lambda: self.told().total() >= count, f"{count} mails", RUN_TIMEOUT_S)

    def kill_sender(self, *, with_its_worker: bool = False) -> str:
        """SIGKILL to a task that is sending; returns the run that it belonged to."""
        task = self.sending_task()
        worker = task.process.parent() if with_its_worker else None
        signal_all([task.process] if worker is None else [worker, task.process])
        held = self.house.rows("select batch_id from duebook.batch where sender = %s", task.name)
        self.killed |= {number for (number,) in held}
        return task.run_id

    def sending_task(self) -> SendingTask:
        """A task that holds a batch, once mails have gone out since it was first seen with it."""
        first_seen: dict[str, int] = {}
        found: list[SendingTask] = []

        def sends() -> bool:
            for task in self.house.senders():
                total = self.told().total()
                if total > first_seen.setdefault(task.name, total):
                    found.append(task)
            return bool(found)

        wait_until(sends, "a task sends", RUN_TIMEOUT_S)
        return found[0]

    def settle(self) -> None:
        """Wait for the end, but not for what is left of the leases of senders that are dead."""
        self.house.rows(
            "update duebook.batch set lease_until = clock_timestamp() where batch_id = any(%s)"
            " returning 1",
            list(self.killed),
        )
        wait_until(lambda: self.house.open_work() == 0, "all is sent", 2 * RUN_TIMEOUT_S)

    def judge(self) -> int:
        """Hold the database against the mail server's log; returns how many are in doubt."""
        house, told = self.house, self.told()
        rows = house.rows(
            "select i.payment_id, o.result, u.batch_id from duebook.intent as i"
            " left join duebook.outcome as o using (account_id, operation_key)"
            " left join duebook.in_doubt as u"
            " on u.account_id = i.account_id and u.intent_id = i.intent_id"
            " where i.payment_id like %s",
            f"{self.name}-%",
        )
        assert len(rows) == self.count
        sent = {payment for payment, result, _ in rows if result == "sent"}
        doubts = {payment: batch for payment, _, batch in rows if batch is not None}
        assert len(sent) + len(doubts) == self.count, "each is sent or in doubt"
        assert max(told.values()) == 1, "somebody was told twice"
        assert sent <= set(told), "said to be sent, and the mail server never took it"
        assert set(told) <= sent | set(doubts), "taken by the mail server, and nobody knows"
        left = set(doubts.values()) - self.killed
        assert not left, f"a sender that was not killed left doubt: {self.ends_of(left)}"
        by_sender = Counter(doubts.values())
        assert all(number <= WINDOW for number in by_sender.values()), by_sender
        assert house.cli("check", "--json").json["violations"] == []
        return len(doubts)

    def ends_of(self, batches: set[int]) -> list[tuple[Any, ...]]:
        """How batches ended, and why what they left is in doubt."""
        return self.house.rows(
            "select u.batch_id, e.sender, e.how, u.cause, count(*), e.size, e.claimed_at,"
            " e.ended_at"
            " from duebook.in_doubt as u left join duebook.batch_ended as e using (batch_id)"
            " where u.batch_id = any(%s) group by 1, 2, 3, 4, 6, 7, 8 order by 1",
            list(batches),
        )

    def resolve_doubts(self) -> None:
        """As a person would who reads the mail server's log; then everybody was told, once."""
        told = self.told()
        for account_id, key, payment in self.house.rows(
            "select i.account_id, i.operation_key, i.payment_id from duebook.in_doubt as u"
            " inner join duebook.intent as i using (account_id, intent_id)"
            " where i.payment_id like %s",
            f"{self.name}-%",
        ):
            known = Resolution(
                key,
                payment in told,
                why="the mail server's log",
                by="pytest",
                account_id=account_id,
            )
            resolve(self.house.connect, known)
        # What is due again has its old due time, for which no trigger wakes a sweep.
        with self.house.stack().api() as api:
            api.trigger(SWEEP)
        self.house.settle()
        told = self.told()
        assert len(told) == self.count
        assert told.total() == self.count, "each payment is told once"

    def answer_in_airflow(self, run_id: str) -> int:
        """Do the same in Airflow's own form, for those that one run asks about; how many."""
        told = self.told()
        self.house.rows(
            "update duebook.in_doubt set look_up_from = clock_timestamp() returning intent_id"
        )
        answered: set[int] = set()
        seen: dict[tuple[int, int], float] = {}
        with self.house.stack().api() as api:
            api.trigger(HOUSEKEEPING, run_id=run_id)
            path = f"/api/v2/dags/{HOUSEKEEPING}/dagRuns/{run_id}"

            def all_answered() -> bool:
                for asked in api._call("GET", f"{path}/hitlDetails").json()["hitl_details"]:
                    task = asked["task_instance"]
                    if task["state"] != "awaiting_input" or asked["response_received"]:
                        continue
                    number, now = task["map_index"], time.monotonic()
                    # Airflow 3.3.2 takes the end of the asking worker for the end of the task when
                    # an answer is faster than a person's; the question then comes once more.
                    if now - seen.setdefault((number, task["try_number"]), now) > ANSWER_AFTER_S:
                        key = asked["subject"].removeprefix("In doubt: ")
                        given = "Sent" if self.payment_of(key) in told else "Not sent"
                        form = f"{path}/taskInstances/question.ask/{number}/hitlDetails"
                        api._call("PATCH", form, json={"chosen_options": [given]})
                        answered.add(number)
                return api.run_state(HOUSEKEEPING, run_id) in FINISHED_STATES

            wait_until(all_answered, "the questions are answered", RUN_TIMEOUT_S)
            assert api.run_state(HOUSEKEEPING, run_id) == "success"
        return len(answered)

    def doubted(self) -> int:
        return int(
            self.house.value(
                "select count(*) from duebook.in_doubt where account_id like %s", f"{self.name}-%"
            )
        )

    def payment_of(self, key: str) -> str:
        return str(
            self.house.value("select payment_id from duebook.intent where operation_key = %s", key)
        )


@contextmanager
def sending(house: House, name: str, count: int, seconds: float) -> Iterator[Story]:
    """Notices that go out slowly, one in so many seconds, once the first of them are out."""
    house.settle()
    story = Story(house, name, count)
    with house.slow_mail(seconds):
        settle_payments(house, name, count)
        story.wait_for_mails(5)
        yield story


def settle_payments(house: House, name: str, count: int) -> None:
    """Payments of the shop, booked and settled: their notices are due at once."""
    references = [f"O-{name}-{number}" for number in range(1, count + 1)]
    book(house, name, references, "shop")
    happened = f"{clock(house.database_url) - timedelta(days=1):%Y-%m-%dT%H:%M:%S}"
    (house.shop / f"{name}.csv").write_text(
        "id,type,order,gross,currency,at\n"
        + "".join(f"e-{each},charge,{each},12.34,EUR,{happened}\n" for each in references)
    )
    # As the night would: by hand it is refused while an incident is open.
    settings = Settings(
        home=house.home,
        database_url=SecretStr(house.database_url),
        environment=ENVIRONMENT,
        operator="pytest",
        config_file=house.config_file,
    )
    report = reconcile_account(house.connect, settings, account="shop")
    assert report.to_json()["intents"] == count


def book(house: House, name: str, references: list[str], provider_account: str) -> None:
    """A booked payment a reference, each with an account and an address of its own."""
    day = (clock(house.database_url) - timedelta(days=1)).isoformat(timespec="seconds")
    amount = "43.21" if provider_account == "stripe" else "12.34"
    ledger, contacts = (house.home / "books" / f"{each}_{name}.csv" for each in ("ledger", "to"))
    named = {f"{name}-{number}": each for number, each in enumerate(references, start=1)}
    ledger.write_text(
        "account_id,payment_id,reference,amount,currency,status,expected_at,provider_account\n"
        + "".join(
            f"{payment},{payment},{reference},{amount},EUR,captured,{day},{provider_account}\n"
            for payment, reference in named.items()
        )
    )
    contacts.write_text(
        "account_id,channel,address,zone,locale,region\n"
        + "".join(f"{each},email,{each}@payers.example,UTC,en,NL\n" for each in named)
    )
    for command, file in (("ledger", ledger), ("contacts", contacts)):
        assert house.cli(command, "import", file).code == 0


@pytest.fixture(scope="module")
def cleared(house: House) -> list[str]:
    """Runs of the sweep that were cleared, to be waited for at the end."""
    return []


@pytest.mark.prove
def test_a_sender_and_the_scheduler_die_in_one_sweep(
    house: House, small_sweeps: None, cleared: list[str]
) -> None:
    """In that state the dead task is cleared, and a further run is asked for twice at once."""
    del small_sweeps
    with sending(house, "both", 180, 0.1) as story:
        run_id = story.kill_sender()
        house.kill("scheduler")
        assert 0 < story.told().total() < story.count, "in mid-sweep"
        with house.stack().api() as api:
            api.clear(SWEEP, run_id)
        cleared.append(run_id)
        assert sorted(trigger_at_once(house, "asked-twice", 2)) == [False, True]
        house.revive("scheduler")
        story.wait_for_mails(90)
        story.settle()
    doubts = story.judge()
    assert doubts > 0, "the sender was killed in a window"
    answered = story.answer_in_airflow("doubts")
    assert answered == min(doubts, 10)
    assert (
        house.value(
            "select count(*) from duebook.audit_event where actor = 'admin' and account_id like %s",
            "both-%",
        )
        == answered
    )
    assert story.doubted() == doubts - answered
    story.resolve_doubts()
    with house.stack().api() as api:
        assert api.wait_for_run(SWEEP, "asked-twice", timeout_s=RUN_TIMEOUT_S) == "success"


def trigger_at_once(house: House, run_id: str, times: int) -> list[bool]:
    """Ask for one run from several threads; whether each of them made it."""
    answers: list[bool] = []

    def trigger() -> None:
        with house.stack().api() as api:
            answers.append(api.trigger(SWEEP, run_id=run_id).created)

    callers = [threading.Thread(target=trigger) for _ in range(times)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return answers


@pytest.mark.prove
@pytest.mark.parametrize("name", ["scheduler", "triggerer", "api-server", "dag-processor"])
def test_a_component_dies_in_mid_sweep(house: House, small_sweeps: None, name: str) -> None:
    del small_sweeps
    with sending(house, f"no-{name}", 120, 0.1) as story:
        house.kill(name)
        assert 0 < story.told().total() < story.count, "in mid-sweep"
        house.revive(name)
        story.settle()
    assert story.judge() == 0, "no sender was killed"
    story.resolve_doubts()


@pytest.mark.prove
@pytest.mark.parametrize("with_its_worker", [False, True])
def test_senders_die_in_mid_sweep(house: House, small_sweeps: None, with_its_worker: bool) -> None:
    """With its worker, Airflow itself goes on believing that the task runs."""
    del small_sweeps
    with sending(house, f"no-sender-{int(with_its_worker)}", 150, 0.1) as story:
        story.kill_sender(with_its_worker=with_its_worker)
        story.settle()
    assert story.judge() <= WINDOW
    story.resolve_doubts()


@pytest.mark.prove
def test_the_api_server_is_away_for_a_minute_in_mid_send(house: House, small_sweeps: None) -> None:
    """Tasks can't report meanwhile, and Airflow ends them: nothing is in doubt for it."""
    del small_sweeps
    with sending(house, "away", 400, 0.2) as story:
        house.kill("api-server")
        died = time.monotonic()
        before = story.told().total()
        wait_until(lambda: time.monotonic() - died >= 60, "a minute", RUN_TIMEOUT_S)
        assert story.told().total() > before, "what was in hand went on"
        assert story.told().total() < story.count, "the minute was in mid-send"
        house.revive("api-server")
        story.settle()
    assert story.judge() == 0, "no sender was killed"
    story.resolve_doubts()


@contextmanager
def open_incident(house: House, name: str) -> Iterator[None]:
    """An incident that pauses the sweeps; whatever happens meanwhile, it is ended afterwards."""
    house.settle()
    opened = house.cli(
        *("incident", "open", "--name", name, "--reason", "looking", "--band", "PT30M"),
        *("--pause-sweep", "--json"),
    )
    assert opened.code == 0, opened.stderr
    try:
        yield
    except BaseException:
        house.cli("incident", "resume", name, "--for", "PT30S", "--json")
        house.cli("incident", "close", name, "--json")
        raise
    resumed = house.cli("incident", "resume", name, "--for", "PT2M", "--json")
    assert resumed.code == 0, resumed.stderr
    house.settle()
    closed = house.cli("incident", "close", name, "--json")
    assert closed.code == 0, closed.stdout + closed.stderr


@pytest.mark.prove
def test_an_open_incident_refuses_what_a_person_starts_and_pauses_the_rest(
    house: House,
) -> None:
    first_tasks = {SWEEP: "sweep", NIGHT: "accounts", EVENTS: "read"}
    story = Story(house, "harbour", 20)
    with open_incident(house, "harbour"), house.stack().api() as api:
        settle_payments(house, story.name, story.count)
        for dag_id in first_tasks:
            api.set_paused(dag_id, paused=False)
            api.trigger(dag_id, run_id="by-hand")
        wait_until(lambda: paused_sweep(api, "harbour"), "a sweep finds it paused", RUN_TIMEOUT_S)
        for dag_id, task_id in first_tasks.items():
            assert api.wait_for_run(dag_id, "by-hand", timeout_s=RUN_TIMEOUT_S) == "failed"
            said = the_one_clear_line(api.task_log(dag_id, "by-hand", task_id, 1, -1))
            assert "harbour" in said
        assert story.told() == {}
        assert house.open_work() >= story.count
    assert story.judge() == 0
    assert story.told().total() == story.count
    with house.stack().api() as api:
        api.clear(SWEEP, "by-hand")
        assert api.wait_for_run(SWEEP, "by-hand", timeout_s=RUN_TIMEOUT_S) == "success"
    assert story.told().total() == story.count


def paused_sweep(api: AirflowApi, incident: str) -> bool:
    """Whether a run that Airflow started by itself ended well, having claimed nothing."""
    for run in api.runs(SWEEP)[:5]:
        if run["run_type"] == "manual" or run["state"] != "success":
            continue
        log = api.task_log(SWEEP, run["dag_run_id"], "sweep", 1)
        if any(f"incident {incident} pauses the sweeps" in str(line["event"]) for line in log):
            return True
    return False


def test_a_webhook_to_the_api_server_is_one_notice_however_often_it_comes(house: House) -> None:
    house.settle()
    stripe = make_stripe_client(STRIPE_KEY, base_address=house.servers.stripe)
    amount: Any = {"amount": 4321, "currency": "eur", "source": "tok_visa"}
    charge = stripe.v1.charges.create(amount).id
    # Three days on, it is settled.
    later = clock(house.database_url) + timedelta(days=3)
    house.servers.set_stripe_clock(later.isoformat())
    story = Story(house, "hooked", 1)
    book(house, story.name, [charge], "stripe")
    body = event("hooked", "charge.updated", id=charge, amount=99_999_999)
    try:
        assert post(house, body) == (200, "stored")
        assert post(house, body) == (200, "duplicate")
        story.wait_for_mails(1)
        assert post(house, body) == (200, "duplicate")
        with house.stack().api() as api:
            api.trigger(EVENTS, run_id="read-again")
            assert api.wait_for_run(EVENTS, "read-again", timeout_s=RUN_TIMEOUT_S) == "success"
        story.settle()
    finally:
        house.servers.set_stripe_clock(None)
    assert story.told() == {"hooked-1": 1}
    assert story.judge() == 0
    assert house.value("select count(*) from duebook.webhook_receipt") == 1
    assert (
        house.value(
            "select s.captured_minor from duebook.settled_position as s"
            " where s.payment_id = 'hooked-1'"
        )
        == 4321
    ), "what the provider says, and not what the event says"


@pytest.mark.prove
def test_what_was_cleared_ran_again_and_told_nobody(house: House, cleared: list[str]) -> None:
    """Airflow ends a killed task that it was told to clear only when its heartbeats are overdue."""
    if not cleared:
        pytest.fail("run together with the test in which a killed sender is cleared")
    with house.no_mail(), house.stack().api() as api:
        for run_id in cleared:
            assert api.wait_for_run(SWEEP, run_id, timeout_s=RUN_TIMEOUT_S) == "success"
            tries = [task["try_number"] for task in api.task_instances(SWEEP, run_id)]
            assert max(tries) > 1
    assert Story(house, "both", 180).told().total() == 180


def post(house: House, body: bytes) -> tuple[int, str]:
    """Post a signed event to the application inside the API server."""
    answer = httpx.post(
        f"{house.stack().login().url}/duebook/webhooks/stripe",
        content=body,
        headers=stripe_headers(body, secrets=[WEBHOOK_SECRET]),
        timeout=60,
    )
    return answer.status_code, str(answer.json().get("status"))
