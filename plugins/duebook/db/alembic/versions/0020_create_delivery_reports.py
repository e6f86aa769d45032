"""Create delivery reports."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Run the body."""
    run_body("0020_create_delivery_reports.sql")
