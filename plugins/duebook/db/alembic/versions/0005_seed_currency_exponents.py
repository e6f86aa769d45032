"""Seed currency exponents."""

from __future__ import annotations

from duebook.db.migrate import run_body

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Run the body."""
    run_body("0005_seed_currency_exponents.sql")
