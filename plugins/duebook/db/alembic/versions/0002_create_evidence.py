"""Create evidence."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Run the body."""
    run_body("0002_create_evidence.sql")
