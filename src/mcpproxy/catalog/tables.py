"""Where do tool lists stay between two runs?"""

from sqlalchemy import BigInteger, Column, Table, Text

from mcpproxy.storage.metadata import metadata

tool_lists = Table(
    "tool_lists",
    metadata,
    Column("server", Text, primary_key=True),
    Column("identity", Text, nullable=False),
    Column("listing", Text, nullable=False),  # JSON, as the server sent it
    Column("listed_at", BigInteger, nullable=False),  # microseconds since 1970, UTC
)
