"""Create pauses and incidents."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Run the body."""
    run_body("0008_create_pauses_and_incidents.sql")
