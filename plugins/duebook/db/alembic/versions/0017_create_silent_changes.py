"""Let silent changes say so."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Run the body."""
    run_body("0017_create_silent_changes.sql")
