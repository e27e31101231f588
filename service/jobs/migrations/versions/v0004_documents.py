"""Stored profiles and clusters, and what jobs and batches keep of them."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables of documents, and let jobs say which contents they mean."""
    op.create_table(
        "documents",
        sa.Column("owner", sa.String(200), primary_key=True),
        sa.Column("kind", sa.String(20), primary_key=True),
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("digest", sa.String(71), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
    )
    op.create_table(
        "attachments",
        sa.Column("carrier", sa.String(36), primary_key=True),
        sa.Column("kind", sa.String(20), primary_key=True),
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("digest", sa.String(71), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("pinned", sa.String(71)))


def downgrade() -> None:
    """Forget the documents."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("pinned")
    for name in ("attachments", "documents"):
        op.drop_table(name)
