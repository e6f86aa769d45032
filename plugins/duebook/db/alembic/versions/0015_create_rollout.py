"""Create rollout."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Run the body."""
    run_body("0015_create_rollout.sql")
