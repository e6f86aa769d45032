"""Run by Alembic, with the connection that `duebook.db.migrate` hands over. No offline mode: the
bodies are plain SQL files, which can be read and run as they are.
"""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="alembic_version",
    version_table_schema="duebook",
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
