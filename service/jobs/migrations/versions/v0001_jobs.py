"""Jobs, batches, answers and workers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables of the first version."""
    op.create_table(
        "batches",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("base", sa.LargeBinary),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("request", sa.String(71), nullable=False),
        sa.Column("idempotency_key", sa.String(255)),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.UniqueConstraint("owner", "idempotency_key", name="batches_idempotency"),
    )
    _jobs()
    op.create_table(
        "answers",
        sa.Column("key", sa.String(71), primary_key=True),
        sa.Column("version", sa.String(40), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("problem", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "workers",
        sa.Column("slot", sa.String(255), primary_key=True),
        sa.Column("token", sa.String(36), nullable=False),
        sa.Column("machine", sa.String(255), nullable=False),
        sa.Column("process", sa.String(64), nullable=False),
        sa.Column("solves", sa.Integer, nullable=False),
        sa.Column("beats", sa.BigInteger, nullable=False),
        sa.Column("beat_at", sa.Double, nullable=False),
    )


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("batch", sa.String(36), sa.ForeignKey("batches.id")),
        sa.Column("position", sa.Integer),
        sa.Column("name", sa.Text),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("direct", sa.Boolean, nullable=False),
        sa.Column("leader", sa.String(36)),
        sa.Column("body", sa.LargeBinary),
        sa.Column("request", sa.String(71), nullable=False),
        sa.Column("include_problem", sa.Boolean, nullable=False),
        sa.Column("idempotency_key", sa.String(255)),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("executor", sa.String(255)),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("stop_asked", sa.Boolean, nullable=False),
        sa.Column("phase", sa.Text),
        sa.Column("incumbent", sa.Double),
        sa.Column("bound", sa.Double),
        sa.Column("relative_gap", sa.Double),
        sa.Column("points", sa.Integer),
        sa.Column("improved_at", sa.Double),
        sa.Column("alive_at", sa.Double),
        sa.Column("answer", sa.String(71)),
        sa.Column("failure", sa.LargeBinary),
        sa.UniqueConstraint("owner", "idempotency_key", name="jobs_idempotency"),
    )
    op.create_index("jobs_state", "jobs", ["state", "created_at"])
    op.create_index("jobs_request", "jobs", ["owner", "request"])
    op.create_index("jobs_batch", "jobs", ["batch", "position"])
    op.create_index("jobs_leader", "jobs", ["leader"])
    op.create_index("jobs_answer", "jobs", ["answer"])
    op.create_index("jobs_finished", "jobs", ["finished_at"])


def downgrade() -> None:
    """Remove the tables of the first version."""
    for name in ("workers", "answers", "jobs", "batches"):
        op.drop_table(name)
