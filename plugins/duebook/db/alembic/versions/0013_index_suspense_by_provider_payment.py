"""Index suspense by provider payment."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Run the body."""
    run_body("0013_index_suspense_by_provider_payment.sql")
