"""Where do tool lists stay between two runs, and what was decided about them?"""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text

from mcpproxy.storage.metadata import metadata

tool_lists = Table(
    "tool_lists",
    metadata,
    Column("server", Text, primary_key=True),
    Column("identity", Text, nullable=False),  # SHA-256 of the identity, which may hold secrets
    Column("listing", Text, nullable=False),  # JSON, as the server sent it
    Column("listed_at", BigInteger, nullable=False),  # microseconds since 1970, UTC
)

# The servers whose first list was seen, each with what it is: another command under the same name is another server.
trust_servers = Table(
    "trust_servers",
    metadata,
    Column("server", Text, primary_key=True),
    Column("identity_key", Text, primary_key=True),  # SHA-256 of the identity, which may be long and hold secrets
    Column("identity", Text, nullable=False),  # the same
    Column("known_at", BigInteger),  # when its first list was taken; null before
    Column("held", Boolean, nullable=False),  # was quarantined: nothing of it is approved without a person
    Column("released_by", Text),  # who approved the server and all that it lists first
)

# What was decided about each tool: the version that may be used, whole, and the version that a person refused.
trust_pins = Table(
    "trust_pins",
    metadata,
    Column("server", Text, primary_key=True),
    Column("identity_key", Text, primary_key=True),
    Column("tool", Text, primary_key=True),  # '' for the server's instructions
    Column("hash", Text),
    Column("definition", Text),  # JSON, as the server sent it
    Column("approved_by", Text),
    Column("approved_at", BigInteger),
    Column("refused", Text),  # the hash of the refused version
    Column("refused_by", Text),
    Column("refused_at", BigInteger),
)

trust_history = Table(
    "trust_history",
    metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("server", Text, nullable=False),
    Column("identity_key", Text, nullable=False),
    Column("tool", Text),  # null where it is about the whole server
    Column("event", Text, nullable=False),
    Column("hash", Text),
    Column("by", Text, nullable=False),
    Index("ix_trust_history_server", "server", "seq"),
    sqlite_autoincrement=True,
)
