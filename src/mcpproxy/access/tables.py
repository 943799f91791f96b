"""Where do agent tokens stay? Hashed, with what each of them may see and do."""

from sqlalchemy import BigInteger, Column, LargeBinary, Table, Text

from mcpproxy.storage.metadata import metadata

agent_tokens = Table(
    "agent_tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("digest", LargeBinary, nullable=False, unique=True),  # SHA-256 of the token; the token itself is nowhere
    Column("scope", Text, nullable=False),  # JSON: servers, tools, allow
    Column("created_at", BigInteger, nullable=False),  # microseconds since 1970, UTC, here and below
    Column("expires_at", BigInteger),  # NULL: never
    Column("last_used_at", BigInteger),  # to the minute
)
