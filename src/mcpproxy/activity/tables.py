"""Where do records stay? In a ledger that only grows at its end, with everything to find them by beside it.

A commit must be quick, and every index on the ledger would make it slower. So the ledger has none, and the writer
adds to the index, the counts and the text search in bulk a moment later. A query looks there and, for what is newer
than that, at the last rows of the ledger itself.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, Table, Text

from mcpproxy.storage.metadata import metadata

# SQLite numbers rows by itself only where the key is exactly INTEGER.
_Sequence: Final = BigInteger().with_variant(Integer, "sqlite")

activity = Table(
    "activity",
    metadata,
    # In the order of commits, over all writers. SQLite counts on from the last row, which retention therefore leaves;
    # AUTOINCREMENT would cost every commit a second page.
    Column("seq", _Sequence, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("server_name", Text),
    Column("tool_name", Text),
    Column("status", Text, nullable=False),
    Column("duration_ms", Float(53)),
    Column("timestamp", BigInteger, nullable=False),  # microseconds since 1970, UTC
    Column("request_id", Text),
    Column("session_id", Text),
    Column("client_name", Text),
    Column("writer", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("prev_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("intent_type", Text),  # worked out of metadata
    Column("search", Text, nullable=False),  # the words of tool, error and reason
    # What may be large stands last: SQLite has to read past all that stands before a column to get at it.
    Column("error_message", Text),
    Column("metadata", Text, nullable=False),  # JSON
    Column("arguments", Text),  # JSON, on one line
    Column("response", Text),
)

activity_index = Table(
    "activity_index",
    metadata,
    Column("seq", _Sequence, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("timestamp", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("server_name", Text),
    Column("tool_name", Text),
    Column("intent_type", Text),
    Column("request_id", Text),
    Column("session_id", Text),
    Index("ix_activity_id", "id"),
    Index("ix_activity_timestamp", "timestamp"),
    Index("ix_activity_type", "type", "timestamp"),
    Index("ix_activity_status", "status", "timestamp"),
    Index("ix_activity_server", "server_name", "timestamp"),
    Index("ix_activity_tool", "tool_name", "timestamp"),
    Index("ix_activity_intent", "intent_type", "timestamp"),
    Index("ix_activity_request", "request_id", "timestamp"),
    Index("ix_activity_session", "session_id", "timestamp"),
)

# How many records of each kind there are, so that nobody counts a million.
activity_counts = Table(
    "activity_counts",
    metadata,
    Column("type", Text, primary_key=True),
    Column("status", Text, primary_key=True),
    Column("server_name", Text, primary_key=True),  # '' where there is none, here and below
    Column("tool_name", Text, primary_key=True),
    Column("intent_type", Text, primary_key=True),
    Column("count", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# The same by hour and by day, but each property for itself: a month has too many combinations of them.
activity_tallies = Table(
    "activity_tallies",
    metadata,
    Column("span", BigInteger, primary_key=True, autoincrement=False),  # an hour or a day, in microseconds
    Column("bucket", BigInteger, primary_key=True, autoincrement=False),  # timestamp // span
    Column("dimension", Text, primary_key=True),  # type, status, intent, server, tool
    Column("value", Text, primary_key=True),
    Column("count", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Write and destructive calls that the upstream may have heard of and that are not closed yet.
activity_open_calls = Table(
    "activity_open_calls",
    metadata,
    Column("id", Text, primary_key=True),
    Column("writer", Text, nullable=False),
    Column("record", Text, nullable=False),  # JSON
)

# Signed statements about chains: that one began, how far it went, up to where retention removed it.
activity_checkpoints = Table(
    "activity_checkpoints",
    metadata,
    Column("writer", Text, primary_key=True),
    Column("kind", Text, primary_key=True),  # start, head, pruned
    Column("position", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("signed_at", BigInteger, nullable=False),
    Column("key", LargeBinary, nullable=False),  # the Ed25519 public key
    Column("signature", LargeBinary, nullable=False),
)
