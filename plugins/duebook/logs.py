"""Where log lines go when Duebook is its own process: stderr, so that stdout is the answer's.

Inside Airflow nothing is configured: its own structlog set-up carries the lines into the task log.
"""

from __future__ import annotations

import logging
import os
import sys

import structlog

LEVEL_VARIABLE = "DUEBOOK_LOG_LEVEL"
DEFAULT_LEVEL = "WARNING"


def configure_logs() -> None:
    """Send structlog's lines to stderr from `DUEBOOK_LOG_LEVEL` up (default WARNING)."""
    name = os.environ.get(LEVEL_VARIABLE, DEFAULT_LEVEL).upper()
    level = logging.getLevelNamesMapping().get(name, logging.WARNING)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
    )
