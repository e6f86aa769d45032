from __future__ import annotations

from duebook.db.snapshot import make_snapshot, normalise
from duebook.db.sql import sql_root


def test_the_committed_snapshot_is_the_schema() -> None:
    committed = (sql_root() / "schema.sql").read_text(encoding="utf-8")
    assert make_snapshot() == committed, "run `make schema` and commit what it changed"


def test_what_differs_from_run_to_run_is_left_out() -> None:
    dump = (
        "--\n-- PostgreSQL database dump\n--\n\n\\restrict Xb7Q\n\n"
        "SET statement_timeout = 0;\nSELECT pg_catalog.set_config('search_path', '', false);\n\n\n"
        "CREATE TABLE duebook.t (\n    n bigint\n);\n\n\n\n"
        "GRANT ALL ON TABLE duebook.t TO duebook;\n"
        "GRANT SELECT ON TABLE duebook.t TO duebook_app;\n\n\\unrestrict Xb7Q\n"
    )
    assert normalise(dump) == (
        "\nCREATE TABLE duebook.t (\n    n bigint\n);\n\n"
        "GRANT SELECT ON TABLE duebook.t TO duebook_app;\n"
    )
