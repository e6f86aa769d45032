"""${message}"""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "${up_revision}"
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Run the body."""
    run_body("${up_revision}_${message.lower().replace(" ", "_")}.sql")
