"""Quotas, and jobs that wait for their turn to be in the queue."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table of quotas, and let jobs be held."""
    op.create_table(
        "quotas",
        sa.Column("owner", sa.String(200), primary_key=True),
        sa.Column("max_queued", sa.Integer, nullable=False),
        sa.Column("max_running", sa.Integer, nullable=False),
        sa.Column("requests_per_minute", sa.Integer, nullable=False),
    )
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("held", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_index("jobs_owner", "jobs", ["owner", "state", "held"])


def downgrade() -> None:
    """Forget the quotas."""
    op.drop_index("jobs_owner", "jobs")
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("held")
    op.drop_table("quotas")
