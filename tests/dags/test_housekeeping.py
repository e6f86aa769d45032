"""Housekeeping: a doubt becomes a question, and its answer one effect."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest

from duebook.airflow import housekeeping as work
from duebook.airflow.failures import TaskRefused
from duebook.services.resolve import Resolution, list_doubts, resolve
from tests.conftest import ENVIRONMENT
from tests.doubt_work import add_doubts, audited, connector, make_older, send
from tests.due_work import add_due, places, value
from tests.services.test_incident import CONFIG

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

pytestmark = pytest.mark.filterwarnings("default")  # Airflow's own, on import

Conn = psycopg.Connection[Any]
HOUR = timedelta(hours=1)
ADA = {"id": "17", "name": "ada"}


@pytest.fixture(autouse=True)
def site(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The environment of the tasks; returns duebook.toml."""
    config = tmp_path / "duebook.toml"
    config.write_text(CONFIG)
    monkeypatch.setenv("DUEBOOK_CONFIG_FILE", str(config))
    monkeypatch.setenv("DUEBOOK_ENVIRONMENT", ENVIRONMENT)
    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", database_url)
    return config


def given(option: str, by: Mapping[str, str] | None = ADA) -> dict[str, Any]:
    """An answer, as Airflow hands it over once it was given or its time was over."""
    return {
        "chosen_options": [option],
        "params_input": {},
        "responded_at": datetime(2026, 12, 1, 3, tzinfo=UTC),
        "responded_by_user": by,
        "timedout": by is None,
    }


def answer(key: str, option: str, by: Mapping[str, str] | None = ADA) -> str:
    return work.apply_answer("a000000", key, given(option, by), "scheduled__1")


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]


class TestDag:
    def test_it_looks_up_first_then_asks_and_proves_beside(self, bag: DagBag) -> None:
        dag = bag.dags["housekeeping"]
        assert {t.task_id: t.downstream_task_ids for t in dag.tasks} == {
            "look_up": {"find_questions"},
            "find_questions": {"question.ask", "question.answer"},
            "question.ask": {"question.answer"},
            "question.answer": set(),
            "keep_house": set(),
            "check": set(),
        }
        schedule: Any = dag.timetable
        assert schedule.expression == "13 * * * *"
        assert dag.is_paused_upon_creation is False
        # The next hour is the retry. Only a question is put again at once (see the DAG).
        retries = {task.task_id: task.retries for task in dag.tasks if task.retries}
        assert retries == {"question.ask": 2}

    def test_a_question_waits_less_than_the_hour_and_leaves_things_as_they_are(
        self, bag: DagBag
    ) -> None:
        dag = bag.dags["housekeeping"]
        ask: Any = dag.get_task("question.ask")
        assert ask.options == ["Sent", "Not sent", "Leave"]
        assert (ask.defaults, ask.multiple) == (["Leave"], False)
        assert ask.response_timeout < HOUR
        assert dag.dagrun_timeout is not None
        assert ask.response_timeout < dag.dagrun_timeout

    def test_the_operator_waits_without_a_worker_and_its_answer_is_applied(
        self, bag: DagBag, conn: Conn, database_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from airflow.providers.standard.operators import hitl
        from airflow.sdk.exceptions import TaskAwaitingInput
        from airflow.sdk.execution_time.context import set_current_context

        [key] = add_doubts(conn, database_url, 1)
        make_older(conn, HOUR)
        [question] = work.open_questions()
        asked: dict[str, Any] = {}
        monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **detail: asked.update(detail))
        ask: Any = copy.copy(bag.dags["housekeeping"].get_task("question.ask"))
        ask.subject, ask.body = question["subject"], question["body"]
        context: Any = {"task_instance": SimpleNamespace(id=uuid4())}
        with pytest.raises(TaskAwaitingInput) as waiting:
            ask.execute(context)
        assert waiting.value.method_name == "execute_complete"
        assert waiting.value.timeout == timedelta(minutes=50)
        assert (asked["options"], asked["defaults"]) == (["Sent", "Not sent", "Leave"], ["Leave"])
        returned = ask.execute_complete(context, given("Not sent"))
        task: Any = bag.dags["housekeeping"].get_task("question.answer")
        ids = question["account_id"], question["operation_key"]
        with set_current_context({"run_id": "scheduled__1"}):
            assert task.python_callable(*ids, returned) == "due"
        assert send(database_url)[1] == [key]

    def test_a_key_is_no_template(self, bag: DagBag) -> None:
        """A payment's name is the provider's; what it resolves to is shown and never rendered."""
        ask: Any = bag.dags["housekeeping"].get_task("question.ask")

        class Resolved:
            def resolve(self, context: Any) -> str:
                return "{{ 7 * 7 }}"

        assert hasattr(ask.subject, "resolve")
        assert hasattr(ask.body, "resolve")
        assert ask.render_template(Resolved(), {}) == "{{ 7 * 7 }}"


class TestQuestions:
    def test_what_can_not_be_looked_up_yet_is_not_asked_about(
        self, conn: Conn, database_url: str
    ) -> None:
        add_doubts(conn, database_url, 1)
        assert work.open_questions() == []
        make_older(conn, HOUR)
        assert len(work.open_questions()) == 1

    def test_the_oldest_ten_are_asked_about(
        self, conn: Conn, database_url: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        keys = add_doubts(conn, database_url, 12)
        make_older(conn, HOUR)
        conn.execute(
            "update duebook.in_doubt as u set since = since - interval '1 day'"
            " from duebook.intent as i where i.intent_id = u.intent_id and i.operation_key = %s",
            [keys[11]],
        )
        questions = work.open_questions()
        assert len(questions) == 10
        assert questions[0]["operation_key"] == keys[11]
        assert "12 keys are in doubt, 10 are asked about" in caplog.text

    def test_a_question_says_all_that_is_known_and_nothing_of_a_customer(
        self, conn: Conn, database_url: str
    ) -> None:
        [key] = add_doubts(conn, database_url, 1)
        make_older(conn, HOUR)
        [question] = work.open_questions()
        [doubt] = list_doubts(connector(database_url), {})
        assert question["subject"] == f"In doubt: {key}"
        for name in ("cause", "account_id", "sender", "message_id", "batch_id"):
            assert str(doubt[name]) in question["body"], name
        assert f"{doubt['claimed_at']:%Y-%m-%d %H:%M:%S} UTC" in question["body"]
        text = question["subject"] + question["body"]
        # The contact and the amount of every intent of these tests.
        assert "x@example.test" not in text
        assert "42.00" not in text
        assert "4200" not in text


class TestAnswers:
    @pytest.mark.parametrize(
        ("option", "done", "place"),
        [("Sent", "sent", "outcome"), ("Not sent", "due", "due"), ("Leave", "left", "in_doubt")],
    )
    def test_each_option(
        self, conn: Conn, database_url: str, option: str, done: str, place: str
    ) -> None:
        [key] = add_doubts(conn, database_url, 1)
        assert answer(key, option) == done
        assert places(conn) == {place: 1}
        acts = [(actor, detail["why"]) for actor, _, detail in audited(conn, "resolve_in_doubt")]
        expected = [("ada", "answered in Airflow, scheduled__1")] if done != "left" else []
        assert acts == expected

    def test_nobodys_answer_changes_nothing(self, conn: Conn, database_url: str) -> None:
        [key] = add_doubts(conn, database_url, 1)
        for option in ("Leave", "Sent", "Not sent"):
            assert answer(key, option, by=None) == "left"
        assert places(conn) == {"in_doubt": 1}

    def test_an_answer_after_somebody_elses_does_nothing_and_is_no_failure(
        self, conn: Conn, database_url: str
    ) -> None:
        [key] = add_doubts(conn, database_url, 1)
        resolve(connector(database_url), Resolution(key, True, "seen in the log", "bob"))
        assert answer(key, "Not sent") == "had_ended"
        assert answer(key, "Not sent") == "had_ended"
        assert places(conn) == {"outcome": 1}
        assert [actor for actor, _, _ in audited(conn, "resolve_in_doubt")] == ["bob"]

    def test_an_option_that_was_never_offered_is_refused(
        self, conn: Conn, database_url: str
    ) -> None:
        [key] = add_doubts(conn, database_url, 1)
        with pytest.raises(TaskRefused):
            answer(key, "Maybe")
        assert places(conn) == {"in_doubt": 1}

    def test_a_name_less_user_is_known_by_the_id(self, conn: Conn, database_url: str) -> None:
        [key] = add_doubts(conn, database_url, 1)
        answer(key, "Sent", by={"id": "17", "name": ""})
        assert audited(conn, "resolve_in_doubt")[0][0] == "17"


def test_it_looks_up_what_a_relays_log_tells(
    conn: Conn, database_url: str, site: Path, tmp_path: Path
) -> None:
    add_doubts(conn, database_url, 2)
    make_older(conn, HOUR)
    assert work.look_up_doubts() == dict.fromkeys(
        ("asked", "sent", "due", "too_early", "cannot_tell"), 0
    )
    log = tmp_path / "mail.log"
    site.write_text(CONFIG.replace("[channels.noop]", f'[channels.noop]\nrelay_log = "{log}"'))
    assert work.look_up_doubts()["cannot_tell"] == 2
    message_id = list_doubts(connector(database_url), {})[0]["message_id"]
    now = value(conn, "select clock_timestamp()").isoformat()
    log.write_text(
        f"{now} mx postfix/cleanup[1]: AB: message-id={message_id}\n"
        f"{now} mx postfix/qmgr[2]: AB: from=<>, size=9, nrcpt=1 (queue active)\n"
    )
    assert work.look_up_doubts()["sent"] == 1
    assert places(conn) == {"outcome": 1, "in_doubt": 1}


def test_the_proof_counts_and_is_red_with_names_when_something_does_not_hold(
    conn: Conn, caplog: pytest.LogCaptureFixture
) -> None:
    add_due(conn, 3)
    found = work.count_violations()
    assert found["violations"] == 0
    assert found["checked"] >= 20
    conn.execute("delete from duebook.due where intent_id = 1")
    with pytest.raises(TaskRefused) as red:
        work.count_violations()
    assert red.value.code == 1
    assert errors(caplog) == ["`duebook check` finds violations: every intent stands somewhere: 1"]
