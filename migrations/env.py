"""Runs one chain on the connection and with the version table that `db/migrate.py` gives."""

from alembic import context

given = context.config.attributes
context.configure(connection=given["connection"], version_table=given["version_table"])
with context.begin_transaction():
    context.run_migrations()
