"""Create receipts."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Run the body."""
    run_body("0009_create_receipts.sql")
