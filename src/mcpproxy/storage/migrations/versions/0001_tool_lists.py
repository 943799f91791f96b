"""The tools each server listed last, so that a start need not wait for slow servers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "tool_lists",
        sa.Column("server", sa.Text, primary_key=True),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("listing", sa.Text, nullable=False),
        sa.Column("listed_at", sa.BigInteger, nullable=False),
    )
