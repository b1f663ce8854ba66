"""Runs migrations on the connection that :class:`~airloom.grid.storage.database.Database` gives."""

from alembic import context

from airloom.grid.storage.tables import Table

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Table.metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
