"""Create calendar."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Run the body."""
    run_body("0006_create_calendar.sql")
