"""Create file checks."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Run the body."""
    run_body("0011_create_file_checks.sql")
