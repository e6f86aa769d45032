"""Create manners."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Run the body."""
    run_body("0022_create_manners.sql")
