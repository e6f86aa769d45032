"""Pause and resume, by kind, channel, account or all."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    del app
