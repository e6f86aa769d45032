"""What is in doubt: resolve and resend."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    del app
