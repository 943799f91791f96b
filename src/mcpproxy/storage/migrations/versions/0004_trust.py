"""What was decided about tools: the approved definitions, the refused ones, and who decided when."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "trust_servers",
        sa.Column("server", sa.Text, primary_key=True),
        sa.Column("identity_key", sa.Text, primary_key=True),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("known_at", sa.BigInteger),
        sa.Column("held", sa.Boolean, nullable=False),
        sa.Column("released_by", sa.Text),
    )
    op.create_table(
        "trust_pins",
        sa.Column("server", sa.Text, primary_key=True),
        sa.Column("identity_key", sa.Text, primary_key=True),
        sa.Column("tool", sa.Text, primary_key=True),
        sa.Column("hash", sa.Text),
        sa.Column("definition", sa.Text),
        sa.Column("approved_by", sa.Text),
        sa.Column("approved_at", sa.BigInteger),
        sa.Column("refused", sa.Text),
        sa.Column("refused_by", sa.Text),
        sa.Column("refused_at", sa.BigInteger),
    )
    op.create_table(
        "trust_history",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("identity_key", sa.Text, nullable=False),
        sa.Column("tool", sa.Text),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("hash", sa.Text),
        sa.Column("by", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_trust_history_server", "trust_history", ["server", "seq"])
