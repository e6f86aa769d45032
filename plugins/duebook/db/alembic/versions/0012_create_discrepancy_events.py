"""Create discrepancy events."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Run the body."""
    run_body("0012_create_discrepancy_events.sql")
