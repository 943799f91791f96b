"""The record of what happened: the ledger, and what finds, counts and vouches for its rows."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

INDEXED = {
    "type": "type",
    "status": "status",
    "server": "server_name",
    "tool": "tool_name",
    "intent": "intent_type",
    "request": "request_id",
    "session": "session_id",
}


def upgrade() -> None:
    """Create the tables."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    _ledger()
    _index()
    _counts()
    _open_calls_and_checkpoints()
    if sqlite:
        # The words come in small letters with spaces between, so the plainest tokenizer keeps them as they are.
        op.execute(
            "CREATE VIRTUAL TABLE activity_search USING fts5(search, content='activity', content_rowid='seq', "
            "detail=none, columnsize=0, tokenize='ascii')"
        )
    else:
        op.execute(
            "CREATE INDEX ix_activity_search ON activity USING gin (array_to_tsvector(string_to_array(search, ' ')))"
        )


def _ledger() -> None:
    op.create_table(
        "activity",
        # What may be large stands last: SQLite has to read past all that stands before a column to get at it.
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("server_name", sa.Text),
        sa.Column("tool_name", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("duration_ms", sa.Float(53)),
        sa.Column("timestamp", sa.BigInteger, nullable=False),
        sa.Column("request_id", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("client_name", sa.Text),
        sa.Column("writer", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("prev_hash", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("intent_type", sa.Text),
        sa.Column("search", sa.Text, nullable=False),
        sa.Column("error_message", sa.Text),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text),
        sa.Column("response", sa.Text),
    )


def _index() -> None:
    op.create_table(
        "activity_index",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("timestamp", sa.BigInteger, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("server_name", sa.Text),
        sa.Column("tool_name", sa.Text),
        sa.Column("intent_type", sa.Text),
        sa.Column("request_id", sa.Text),
        sa.Column("session_id", sa.Text),
    )
    op.create_index("ix_activity_id", "activity_index", ["id"])
    op.create_index("ix_activity_timestamp", "activity_index", ["timestamp"])
    for name, column in INDEXED.items():
        op.create_index(f"ix_activity_{name}", "activity_index", [column, "timestamp"])


def _counts() -> None:
    op.create_table(
        "activity_counts",
        sa.Column("type", sa.Text, primary_key=True),
        sa.Column("status", sa.Text, primary_key=True),
        sa.Column("server_name", sa.Text, primary_key=True),
        sa.Column("tool_name", sa.Text, primary_key=True),
        sa.Column("intent_type", sa.Text, primary_key=True),
        sa.Column("count", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "activity_tallies",
        sa.Column("span", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("bucket", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("dimension", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, primary_key=True),
        sa.Column("count", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )


def _open_calls_and_checkpoints() -> None:
    op.create_table(
        "activity_open_calls",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("writer", sa.Text, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_table(
        "activity_checkpoints",
        sa.Column("writer", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("signed_at", sa.BigInteger, nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("signature", sa.LargeBinary, nullable=False),
    )
