"""docker-compose.yml against the compose specification, and against this repository."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = ROOT / "docker-compose.yml"
TEXT = COMPOSE.read_text()
DOCUMENT: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = DOCUMENT["services"]
VARIABLE = re.compile(r"(?<!\$)\$\{(?P<name>\w+)(?P<rest>[^}]*)\}")
# Ends by itself, so its end is awaited instead of its health.
ONE_SHOT = {"init"}


def schema() -> dict[str, Any]:
    """The compose specification's own schema, as the package check-jsonschema carries it."""
    vendored = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    found: dict[str, Any] = json.loads(vendored.read_text())
    return found


def problems(document: dict[str, Any]) -> list[str]:
    # An unset or invented key passes YAML and is silently ignored or refused by docker much later.
    validator = jsonschema.validators.validator_for(schema())(schema())
    return [f"{e.json_path}: {e.message}" for e in validator.iter_errors(document)]


def test_the_file_is_what_the_compose_specification_allows() -> None:
    assert problems(DOCUMENT) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("services", "redis", "helthcheck"), {"test": "x"}),
        (("services", "worker", "depends_on", "redis", "condition"), "service_well"),
        (("services", "postgres", "healthcheck", "retries"), [5]),
        (("volumes",), ["redis-data"]),
    ],
)
def test_the_schema_would_see_a_slip(path: tuple[str, ...], value: Any) -> None:
    document = copy.deepcopy(DOCUMENT)
    place = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    assert problems(document)


def test_every_part_of_airflow_is_there() -> None:
    assert set(SERVICES) == {
        "api-server",
        "scheduler",
        "dag-processor",
        "triggerer",
        "worker",
        "init",
        "postgres",
        "redis",
        "mail",
    }


@pytest.mark.parametrize("name", sorted(set(SERVICES) - ONE_SHOT))
def test_a_service_says_whether_it_is_healthy(name: str) -> None:
    healthcheck = SERVICES[name]["healthcheck"]
    assert healthcheck["test"][0] in {"CMD", "CMD-SHELL"}
    assert {"interval", "timeout", "retries"} <= set(healthcheck)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_waits_for_what_it_needs_to_be_healthy(name: str) -> None:
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        expected = "service_completed_successfully" if needed in ONE_SHOT else "service_healthy"
        assert how["condition"] == expected
    if SERVICES[name].get("build") and name not in ONE_SHOT:
        assert {"init", "postgres", "redis"} <= set(SERVICES[name]["depends_on"])


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_an_image_is_pinned(name: str) -> None:
    _, colon, tag = SERVICES[name]["image"].partition(":")
    assert colon
    assert tag != "latest"
    assert re.search(r"\d", tag)


def test_postgresql_is_18() -> None:
    assert SERVICES["postgres"]["image"].startswith("postgres:18")


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_what_is_published_is_published_to_this_machine_alone(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert port.startswith("127.0.0.1:")


def test_no_value_has_a_default_and_each_is_in_the_example() -> None:
    used = {match["name"]: match["rest"] for match in VARIABLE.finditer(TEXT)}
    optional = {name for name, rest in used.items() if not rest.startswith(":?")}
    assert optional == {"STRIPE_API_KEY", "STRIPE_WEBHOOK_SECRET", "TRUSTED_PROXIES"}
    example = dict(
        line.split("=", 1)
        for line in (ROOT / ".env.example").read_text().splitlines()
        if line and not line.startswith("#")
    )
    assert set(example) == set(used)
    given = {name for name, value in example.items() if value}
    assert given == {"SMTP_CONNECTION", "SETTLEMENTS_FOLDER", "DUEBOOK_WITNESS"}


def test_no_password_stands_in_the_file() -> None:
    for line in TEXT.splitlines():
        key, _, value = line.partition(":")
        if re.search(r"password|secret|_key|auth$", key, re.IGNORECASE) and "FILE" not in key:
            assert not value.strip() or value.strip().startswith("${"), line
    for login in re.findall(r"://([^@\s]*)@", TEXT):
        assert "${" in login, login


def test_the_folders_that_belong_together_are_mounted_beside_each_other() -> None:
    mounts = dict(volume.split(":")[:2] for volume in SERVICES["scheduler"]["volumes"])
    for name in ("dags", "plugins", "sql", "duebook.toml"):
        assert mounts[f"./{name}"] == f"/opt/airflow/{name}"
        assert (ROOT / name).exists()
    assert (ROOT / "deploy" / "postgres").is_dir()
    for name, service in SERVICES.items():
        if service.get("build"):
            assert service["volumes"] == SERVICES["scheduler"]["volumes"], name


def test_what_the_image_copies_is_there_and_is_not_ignored() -> None:
    build = SERVICES["scheduler"]["build"]
    dockerfile = ROOT / build["dockerfile"]
    ignored = (dockerfile.with_name("Dockerfile.dockerignore")).read_text().splitlines()
    copied = re.findall(r"^COPY (?:--\S+ )*(\S+) ", dockerfile.read_text(), re.MULTILINE)
    assert "plugins" in copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored


def test_the_image_is_the_airflow_of_the_lock() -> None:
    locked = re.search(
        r"^apache-airflow==(\S+)", (ROOT / "requirements/runtime.lock").read_text(), re.MULTILINE
    )
    assert locked
    first = re.search(r"^FROM apache/airflow:(\S+)", (ROOT / "deploy/Dockerfile").read_text(), re.M)
    assert first
    assert locked[1] in first[1]


def airflow_arguments(service: dict[str, Any]) -> list[str]:
    command = service["command"]
    return [command] if isinstance(command, str) else list(command)


def test_airflow_knows_each_command_and_each_check(tmp_path: Path) -> None:
    components = ("api-server", "scheduler", "dag-processor", "triggerer")
    commands = [airflow_arguments(SERVICES[name]) for name in components]
    checks = [service.get("healthcheck", {}).get("test", []) for service in SERVICES.values()]
    commands += [test[2:] for test in checks if test[1:2] == ["airflow"]]
    commands += [["db", "migrate"], ["pools", "import", "pools.json"]]
    assert len(commands) == 8
    parse = (
        "import json, sys, warnings; warnings.simplefilter('ignore');"
        "from airflow.cli.cli_parser import get_parser;"
        "[get_parser().parse_args(each).func for each in json.loads(sys.argv[1])]"
    )
    done = subprocess.run(
        [sys.executable, "-c", parse, json.dumps(commands)],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-400:]


def test_the_settings_are_settings_that_airflow_has() -> None:
    template = files("airflow") / "config_templates" / "config.yml"
    known = yaml.safe_load(template.read_text())
    for variable in SERVICES["worker"]["environment"]:
        if not variable.startswith("AIRFLOW__"):
            continue
        section, option = variable.removeprefix("AIRFLOW__").lower().split("__")
        if section.startswith("celery"):  # of its provider, which the image has
            continue
        assert option in known[section]["options"], variable


@pytest.mark.parametrize("path", sorted((ROOT / "deploy").rglob("*.sh")), ids=lambda p: p.name)
def test_a_script_is_valid_and_stops_at_the_first_error(path: Path) -> None:
    subprocess.run(["bash", "-n", str(path)], check=True)
    assert "set -euo pipefail" in path.read_text()
