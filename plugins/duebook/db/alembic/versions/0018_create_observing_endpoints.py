"""Let an old sender tell its sends by a webhook."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Run the body."""
    run_body("0018_create_observing_endpoints.sql")
