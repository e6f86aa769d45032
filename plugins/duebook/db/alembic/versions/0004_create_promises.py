"""Create promises."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Run the body."""
    run_body("0004_create_promises.sql")
