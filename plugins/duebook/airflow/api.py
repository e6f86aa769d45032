"""Airflow's public REST API (v2) as an engineer uses it: trigger, watch, pause, read counts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from duebook.errors import InputError, RefusedError, UnavailableError

FINISHED_STATES = frozenset({"success", "failed"})


@dataclass(frozen=True, slots=True)
class TriggeredRun:
    """One DAG run; `created` is False when this run id had been triggered before (HTTP 409)."""

    dag_id: str
    run_id: str
    created: bool


class AirflowApi:
    """A session with one Airflow API server, logged in by name and password.

    Every method raises UnavailableError when the server can't be reached, InputError for an
    unknown DAG or run, and RefusedError when the server turns the request down.
    """

    def __init__(self, base_url: str, username: str, password: str) -> None:
        self._client = httpx.Client(base_url=base_url, timeout=30.0)
        self._username = username
        self._password = password
        self._token: str | None = None

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> AirflowApi:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def health(self, since: datetime | None = None) -> dict[str, str | None]:
        """State by component: metadatabase, scheduler, triggerer, dag_processor. Needs no login.

        Airflow calls a component that was killed healthy for another half minute; with `since`, a
        component whose last heartbeat is older is `unhealthy`.
        """
        answer = self._send("GET", "/api/v2/monitor/health")
        found: dict[str, str | None] = {}
        for name, part in answer.json().items():
            beat = part.get(f"latest_{name}_heartbeat")
            is_old = since is not None and bool(beat) and datetime.fromisoformat(beat) < since
            found[name] = "unhealthy" if is_old else part["status"]
        return found

    def dags(self) -> dict[str, bool]:
        """Every DAG that Airflow has parsed, and whether it is paused."""
        answer = self._call("GET", "/api/v2/dags", params={"limit": 100, "exclude_stale": True})
        return {dag["dag_id"]: dag["is_paused"] for dag in answer.json()["dags"]}

    def import_errors(self) -> dict[str, str]:
        """DAG files that could not be parsed, and why."""
        answer = self._call("GET", "/api/v2/importErrors")
        return {e["filename"]: e["stack_trace"] for e in answer.json()["import_errors"]}

    def set_paused(self, dag_id: str, *, paused: bool) -> None:
        self._call("PATCH", f"/api/v2/dags/{dag_id}", json={"is_paused": paused})

    def trigger(
        self,
        dag_id: str,
        *,
        conf: Mapping[str, Any] | None = None,
        run_id: str | None = None,
    ) -> TriggeredRun:
        """Ask for one run. `conf` fills the DAG's params.

        A caller's own `run_id` makes the request safe to repeat: the second answer is a 409, and
        means that the run exists already.
        """
        body: dict[str, Any] = {"logical_date": None, "conf": dict(conf or {})}
        if run_id is not None:
            body["dag_run_id"] = run_id
        answer = self._call("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body, allow=(409,))
        if answer.status_code == httpx.codes.CONFLICT:
            if run_id is None:
                raise RefusedError(f"Airflow refused a run of {dag_id}: {_detail(answer)}")
            return TriggeredRun(dag_id, run_id, created=False)
        return TriggeredRun(dag_id, answer.json()["dag_run_id"], created=True)

    def run_state(self, dag_id: str, run_id: str) -> str:
        answer = self._call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")
        return str(answer.json()["state"])

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """The newest hundred runs of a DAG, newest first."""
        params = {"order_by": "-run_after", "limit": 100}
        answer = self._call("GET", f"/api/v2/dags/{dag_id}/dagRuns", params=params)
        return list(answer.json()["dag_runs"])

    def wait_for_run(
        self, dag_id: str, run_id: str, *, timeout_s: float, poll_s: float = 0.5
    ) -> str:
        """Wait until the run has ended; returns `success` or `failed`.

        Raises UnavailableError when it has not ended after `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            state = self.run_state(dag_id, run_id)
            if state in FINISHED_STATES:
                return state
            if time.monotonic() >= deadline:
                raise UnavailableError(
                    f"Airflow run {run_id} of {dag_id} is still {state} after {timeout_s:.0f} s"
                )
            time.sleep(poll_s)

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The task instances of one run, each mapped one with its `map_index` and label."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        answer = self._call("GET", path, params={"limit": 100})
        return list(answer.json()["task_instances"])

    def return_value(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> Any:
        """What a task returned (counts only, in Duebook)."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        answer = self._call(
            "GET",
            f"{path}/xcomEntries/return_value",
            params={"map_index": map_index, "stringify": False, "deserialize": False},
        )
        return answer.json()["value"]

    def task_log(
        self, dag_id: str, run_id: str, task_id: str, try_number: int, map_index: int = -1
    ) -> list[dict[str, Any]]:
        """The log of one try, a list of structured lines (`event`, `level`, `timestamp`, …)."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{try_number}"
        answer = self._call(
            "GET",
            path,
            params={"map_index": map_index, "full_content": True},
            headers={"Accept": "application/json"},
        )
        return list(answer.json()["content"])

    def clear(self, dag_id: str, run_id: str) -> None:
        """Clear every task of a run, so that Airflow runs it again."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/clear"
        self._call("POST", path, json={"dry_run": False})

    def pool(self, name: str) -> dict[str, Any]:
        """A pool with its `slots` and how many of them are taken."""
        return dict(self._call("GET", f"/api/v2/pools/{name}").json())

    def put_pool(self, name: str, slots: int, description: str) -> None:
        """Make a pool, or give an existing one this size."""
        body = {"slots": slots, "description": description, "include_deferred": False}
        answer = self._call("POST", "/api/v2/pools", json={"name": name, **body}, allow=(409,))
        if answer.status_code == httpx.codes.CONFLICT:
            self._call("PATCH", f"/api/v2/pools/{name}", json={"pool": name, **body})

    def _call(
        self,
        method: str,
        path: str,
        *,
        allow: tuple[int, ...] = (),
        headers: Mapping[str, str] | None = None,
        **request: Any,
    ) -> httpx.Response:
        answer = self._send(method, path, headers=self._authorized(headers), **request)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            self._token = None
            answer = self._send(method, path, headers=self._authorized(headers), **request)
        if answer.is_success or answer.status_code in allow:
            return answer
        message = f"Airflow answered {answer.status_code} to {method} {path}: {_detail(answer)}"
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise InputError(message)
        if answer.is_server_error:
            raise UnavailableError(message)
        raise RefusedError(message)

    def _authorized(self, headers: Mapping[str, str] | None) -> dict[str, str]:
        if self._token is None:
            answer = self._send(
                "POST",
                "/auth/token",
                json={"username": self._username, "password": self._password},
            )
            if not answer.is_success:
                raise RefusedError(
                    f"Airflow refused the login of {self._username}: {_detail(answer)}"
                )
            self._token = str(answer.json()["access_token"])
        return {**(headers or {}), "Authorization": f"Bearer {self._token}"}

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            return self._client.request(method, path, **request)
        except httpx.HTTPError as error:
            raise UnavailableError(
                f"Airflow at {self._client.base_url} can't be reached ({type(error).__name__})"
            ) from error


def _detail(answer: httpx.Response) -> str:
    try:
        body = answer.json()
    except ValueError:
        return answer.reason_phrase
    detail = body.get("detail", answer.reason_phrase) if isinstance(body, dict) else body
    return str(detail)[:300]
