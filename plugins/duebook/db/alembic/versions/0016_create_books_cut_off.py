"""Create the cut-off of the books."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Run the body."""
    run_body("0016_create_books_cut_off.sql")
