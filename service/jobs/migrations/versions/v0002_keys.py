"""API keys and their secrets."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables of keys."""
    op.create_table(
        "api_keys",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("revoked_at", sa.Double),
    )
    op.create_table(
        "key_secrets",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("key", sa.String(100), sa.ForeignKey("api_keys.name"), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
    )


def downgrade() -> None:
    """Remove the tables of keys."""
    for name in ("key_secrets", "api_keys"):
        op.drop_table(name)
