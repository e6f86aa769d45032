"""Create paced budgets."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Run the body."""
    run_body("0021_create_paced_budgets.sql")
