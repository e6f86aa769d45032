"""A question of `housekeeping` in a real Airflow: one a key, answered by name, applied once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.airflow.api import FINISHED_STATES, AirflowApi
from duebook.airflow.stack import LocalStack
from tests.airflow.test_stack import wait_until
from tests.conftest import ENVIRONMENT, Databases
from tests.doubt_work import add_doubts, audited, make_older, send
from tests.due_work import places
from tests.services.test_incident import CONFIG
from tests.services.test_look_up import HOUR

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.prove, pytest.mark.timeout(600)]

DAGS = Path(__file__).resolve().parents[2] / "dags"
DAG, ASK = "housekeeping", "question.ask"


@pytest.fixture
def api(
    databases: Databases,
    database_url: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[AirflowApi]:
    dags = tmp_path / "dags"
    dags.mkdir()
    for path in DAGS.glob("housekeeping.*"):
        shutil.copy(path, dags)
    config = tmp_path / "duebook.toml"
    config.write_text(CONFIG)
    stack = LocalStack(
        tmp_path_factory.mktemp("stack"),
        metadata_url=databases.create(),
        connections={"duebook": database_url},
        environment={"DUEBOOK_ENVIRONMENT": ENVIRONMENT, "DUEBOOK_CONFIG_FILE": str(config)},
        dags=dags,
    )
    try:
        stack.start()
        with stack.api() as api:
            yield api
    finally:
        stack.stop(drain_s=0)


def test_each_answer_meets_its_own_key(
    api: AirflowApi, conn: psycopg.Connection[Any], database_url: str
) -> None:
    sent, due, left = add_doubts(conn, database_url, 3)
    make_older(conn, HOUR)
    run = api.trigger(DAG).run_id

    def asking() -> dict[int, str]:
        return {
            each["map_index"]: each["state"]
            for each in api.task_instances(DAG, run)
            if each["task_id"] == ASK
        }

    wait_until(lambda: list(asking().values()) == ["awaiting_input"] * 3, "three questions", 240)
    run_path = f"/api/v2/dags/{DAG}/dagRuns/{run}"
    options = {sent: "Sent", due: "Not sent", left: "Leave"}
    subjects: dict[str, int] = {}

    def all_answered() -> bool:
        for asked in api._call("GET", f"{run_path}/hitlDetails").json()["hitl_details"]:
            if asked["response_received"]:
                continue
            assert asked["options"] == ["Sent", "Not sent", "Leave"]
            key = asked["subject"].removeprefix("In doubt: ")
            subjects[key] = asked["task_instance"]["map_index"]
            path = f"{run_path}/taskInstances/{ASK}/{subjects[key]}/hitlDetails"
            api._call("PATCH", path, json={"chosen_options": [options[key]]}, allow=(409,))
        return api.run_state(DAG, run) in FINISHED_STATES

    # Answered too fast for the scheduler, a question is asked once more.
    wait_until(all_answered, "every question is answered", 240)
    assert set(subjects) == {sent, due, left}
    assert api.run_state(DAG, run) == "success", _what_failed(api, run)
    answers = {
        key: api.return_value(DAG, run, "question.answer", map_index=index)
        for key, index in subjects.items()
    }
    assert answers == {sent: "sent", due: "due", left: "left"}
    assert places(conn) == {"outcome": 1, "due": 1, "in_doubt": 1}
    acts = {(actor, key) for actor, key, _ in audited(conn, "resolve_in_doubt")}
    assert {key for _, key in acts} == {sent, due}
    # By the name of who is logged in.
    assert {actor for actor, _ in acts} == {api._username}
    assert send(database_url)[1] == [due]


def _what_failed(api: AirflowApi, run: str) -> str:
    """The last lines of the log of each task that failed."""
    lines = []
    for each in api.task_instances(DAG, run):
        if each["state"] == "failed":
            name, number = each["task_id"], each["map_index"]
            log = api.task_log(DAG, run, name, each["try_number"], number)
            lines += [f"{name} {number}", *(str(line) for line in log[-12:])]
    return "\n".join(lines)
