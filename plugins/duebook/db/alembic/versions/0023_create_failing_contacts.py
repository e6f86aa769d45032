"""Create failing contacts."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Run the body."""
    run_body("0023_create_failing_contacts.sql")
