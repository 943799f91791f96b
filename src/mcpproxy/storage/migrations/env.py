"""How Alembic runs here: inside the transaction, and the lock, that the opening of the storage holds."""

from alembic import context

from mcpproxy.storage.metadata import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
