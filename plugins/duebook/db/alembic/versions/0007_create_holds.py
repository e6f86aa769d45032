"""Create holds."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Run the body."""
    run_body("0007_create_holds.sql")
