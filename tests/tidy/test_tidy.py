"""The repository keeps its own rules; each failure names file, line and what is wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.tidy import rules
from tests.tidy.rules import ROOT, files, files_under, name_of

_TEXT = {".py", ".sql", ".toml", ".yml", ".yaml", ".sh", ".md", ".cfg", ".mako", ".jinja2", ".svg"}
_DAG_IMPORTS = ("airflow.sdk", "airflow.providers.", "duebook.")
_VAGUE = {"common", "util", "utils", "helper", "helpers", "misc"}
_LARGEST = 1024 * 1024


def _broken(faults: Iterable[tuple[Path, Iterator[str]]]) -> list[str]:
    return [f"{name_of(path)}:{fault}" for path, found in faults for fault in found]


def _texts() -> list[Path]:
    return [path for path in files() if path.suffix in _TEXT or path.suffix == ""]


def _python(*folders: str) -> list[Path]:
    return [path for folder in folders for path in files_under(folder, ".py")]


def _own_queries() -> list[Path]:
    return files_under("sql/queries", ".sql") + files_under("bench/sql/queries", ".sql")


def test_there_is_something_to_look_at() -> None:
    assert len(_python("plugins")) > 20
    assert len(_own_queries()) > 20


def test_lines_are_short() -> None:
    # ruff and sqlfluff hold Python and SQL; a value in YAML often can not be broken.
    rest = [p for p in files() if p.suffix in {".sh", ".toml"} or p.suffix == ""]
    rest = [p for p in rest if p.name != "LICENSE"]
    assert _broken((path, rules.long_lines(path.read_text())) for path in rest) == []


def test_functions_are_short() -> None:
    sources = _python("plugins", "dags", "tests", "bench")
    assert _broken((path, rules.long_functions(path.read_text())) for path in sources) == []


def test_dag_files_are_thin() -> None:
    lengths = {name_of(p): len(p.read_text().splitlines()) for p in _python("dags")}
    assert {name: n for name, n in lengths.items() if n > rules.DAG_LINES} == {}


def test_nothing_says_that_it_is_unfinished() -> None:
    assert _broken((path, rules.unfinished(path.read_text())) for path in _texts()) == []


def test_nothing_names_a_registry_or_a_path_of_one_machine() -> None:
    assert _broken((path, rules.foreign_places(path.read_text())) for path in _texts()) == []


def test_files_are_small_and_text_ends_with_a_newline() -> None:
    assert [name_of(path) for path in files() if path.stat().st_size > _LARGEST] == []
    ends = {name_of(p): p.read_bytes()[-1:] for p in _texts() if p.stat().st_size}
    assert [name for name, end in ends.items() if end != b"\n"] == []


def test_python_holds_no_sql() -> None:
    sources = _python("plugins", "dags", "bench")
    assert _broken((path, rules.sql_strings(path.read_text())) for path in sources) == []


def test_only_the_command_line_prints() -> None:
    sources = [p for p in _python("plugins", "dags") if p != ROOT / "plugins/duebook/cli.py"]
    assert _broken((path, rules.prints(path.read_text())) for path in sources) == []


def test_dags_import_airflow_from_its_stable_surface_only() -> None:
    wrong = [
        f"{name_of(path)}:{line}: {module}"
        for path in _python("dags")
        for line, module in rules.imported(path.read_text())
        if module.split(".")[0] in {"airflow", "duebook"}
        and not f"{module}.".startswith(_DAG_IMPORTS)
    ]
    assert wrong == []


def test_modules_are_named_by_what_they_do() -> None:
    assert [name_of(p) for p in _python("plugins", "tests", "bench") if p.stem in _VAGUE] == []


def test_airflow_does_not_load_the_package_as_plugin_files() -> None:
    # Airflow runs every file under plugins/ as a top-level module; see plugins/.airflowignore.
    held_back = (ROOT / "plugins/.airflowignore").read_text().split()
    assert "duebook/" in held_back
    loaded = [path.name for path in (ROOT / "plugins").glob("*.py")]
    assert loaded == ["duebook_plugin.py"]


def test_sql_is_not_a_template() -> None:
    opener = "{" * 2
    sources = [path for path in files_under("sql", ".sql") if opener in path.read_text()]
    assert [name_of(path) for path in sources] == []


def test_a_query_is_one_named_statement_a_file() -> None:
    faults = ((path, rules.query_faults(path.stem, path.read_text())) for path in _own_queries())
    assert _broken(faults) == []


def test_query_names_are_unique() -> None:
    counted = Counter(path.stem for path in _own_queries())
    assert [name for name, count in counted.items() if count > 1] == []


def test_every_query_is_used() -> None:
    sources = "".join(p.read_text() for p in _python("plugins", "dags", "bench", "tests"))
    unused = [name_of(p) for p in _own_queries() if f'"{p.stem}"' not in sources]
    assert unused == []


def test_a_function_or_view_has_a_file_of_its_name() -> None:
    wrong = []
    for path in files_under("sql/functions", ".sql") + files_under("sql/views", ".sql"):
        found = rules.objects(path.read_text())
        if found != [path.stem]:
            wrong.append(f"{name_of(path)}: makes {found}")
    assert wrong == []


def test_views_are_reports() -> None:
    outside = [
        name_of(path)
        for path in files_under("sql/views", ".sql")
        if f"view duebook_reports.{path.stem}" not in path.read_text()
    ]
    assert outside == []


def test_the_gate_has_one_caller() -> None:
    # Every path that sends goes by judge.py, and nothing else asks a channel to send.
    deciding = [
        name_of(path)
        for path in _python("plugins", "dags")
        if re.search(r"\bdecide\(|import .*\bdecide\b", path.read_text())
        and "resolve as decide" not in path.read_text()
    ]
    assert deciding == [
        "plugins/duebook/domain/gate.py",
        "plugins/duebook/services/judge.py",
    ]
    sending = [
        name_of(path)
        for path in _python("plugins/duebook/services", "plugins/duebook/web", "dags")
        if re.search(r"channel\.send(_keys)?\(", path.read_text())
    ]
    assert sending == ["plugins/duebook/services/deliver.py"]
