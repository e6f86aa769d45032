"""Create entry allocations."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Run the body."""
    run_body("0019_create_entry_allocations.sql")
