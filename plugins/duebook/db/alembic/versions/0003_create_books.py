"""Create books."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Run the body."""
    run_body("0003_create_books.sql")
