"""Create restores."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Run the body."""
    run_body("0010_create_restores.sql")
