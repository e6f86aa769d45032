"""Create rules."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Run the body."""
    run_body("0001_create_rules.sql")
