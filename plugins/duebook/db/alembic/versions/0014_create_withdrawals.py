"""Create withdrawals."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Run the body."""
    run_body("0014_create_withdrawals.sql")
