"""The tables of the service. Every change of them comes with a migration.

``jobs``: what was asked, its state, how far it is and how it ended. ``answers``: answers by what was asked, so that an
equal request needs no search. ``batches``: what the jobs of a batch have in common. ``workers``: who is alive.
``api_keys``: who may use the service. ``key_secrets``: what they show for it; a key that is being rotated has several.
``quotas``: how much each owner may use. ``documents``: stored profiles and clusters. ``attachments``: what those were
that a job or a batch names, when it was taken.
"""

import sqlalchemy as sa

metadata = sa.MetaData()

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("owner", sa.String(200), nullable=False),
    sa.Column("batch", sa.String(36), sa.ForeignKey("batches.id")),
    sa.Column("position", sa.Integer),  # in the batch, from 0
    sa.Column("name", sa.Text),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("direct", sa.Boolean, nullable=False),  # solved by the process that took it, not in the queue
    sa.Column("held", sa.Boolean, nullable=False, server_default=sa.false()),  # waits for its turn to be in the queue
    sa.Column("leader", sa.String(36)),  # the job of the same batch and content whose end is this one's too
    sa.Column("body", sa.LargeBinary),  # compressed
    sa.Column("request", sa.String(71), nullable=False),  # digest of what was asked, as it was written
    sa.Column("pinned", sa.String(71)),  # digest of the stored documents that it names
    sa.Column("include_problem", sa.Boolean, nullable=False),
    sa.Column("idempotency_key", sa.String(255)),
    sa.Column("created_at", sa.Double, nullable=False),  # seconds since 1970, as all times
    sa.Column("started_at", sa.Double),
    sa.Column("finished_at", sa.Double),
    sa.Column("executor", sa.String(255)),  # the slot that solves it
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("stop_asked", sa.Boolean, nullable=False),
    sa.Column("phase", sa.Text),
    sa.Column("incumbent", sa.Double),
    sa.Column("bound", sa.Double),
    sa.Column("relative_gap", sa.Double),
    sa.Column("points", sa.Integer),
    sa.Column("improved_at", sa.Double),
    sa.Column("alive_at", sa.Double),
    sa.Column("answer", sa.String(71)),  # key in answers
    sa.Column("failure", sa.LargeBinary),  # a problem document
    sa.UniqueConstraint("owner", "idempotency_key", name="jobs_idempotency"),
    sa.Index("jobs_state", "state", "created_at"),
    sa.Index("jobs_owner", "owner", "state", "held"),
    sa.Index("jobs_request", "owner", "request"),
    sa.Index("jobs_batch", "batch", "position"),
    sa.Index("jobs_leader", "leader"),
    sa.Index("jobs_answer", "answer"),
    sa.Index("jobs_finished", "finished_at"),
)

answers = sa.Table(
    "answers",
    metadata,
    sa.Column("key", sa.String(71), primary_key=True),
    sa.Column("version", sa.String(40), nullable=False),  # of Partita; another one may answer otherwise
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),  # compressed, without the problem
    sa.Column("problem", sa.LargeBinary, nullable=False),  # compressed
    sa.Column("created_at", sa.Double, nullable=False),
)

batches = sa.Table(
    "batches",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("owner", sa.String(200), nullable=False),
    sa.Column("base", sa.LargeBinary),  # compressed; the jobs hold patches to it
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("request", sa.String(71), nullable=False),
    sa.Column("idempotency_key", sa.String(255)),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.UniqueConstraint("owner", "idempotency_key", name="batches_idempotency"),
)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("slot", sa.String(255), primary_key=True),
    sa.Column("token", sa.String(36), nullable=False),  # of the process that holds the slot
    sa.Column("machine", sa.String(255), nullable=False),
    sa.Column("process", sa.String(64), nullable=False),
    sa.Column("solves", sa.Integer, nullable=False),
    sa.Column("beats", sa.BigInteger, nullable=False),  # counted up while the process lives
    sa.Column("beat_at", sa.Double, nullable=False),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("owner", sa.String(200), nullable=False),  # of jobs; keys that share them have the same
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("revoked_at", sa.Double),
)

key_secrets = sa.Table(
    "key_secrets",
    metadata,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("key", sa.String(100), sa.ForeignKey("api_keys.name"), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),  # SHA-256, in hexadecimal digits
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double),
)

quotas = sa.Table(
    "quotas",
    metadata,
    sa.Column("owner", sa.String(200), primary_key=True),
    sa.Column("max_queued", sa.Integer, nullable=False),
    sa.Column("max_running", sa.Integer, nullable=False),
    sa.Column("requests_per_minute", sa.Integer, nullable=False),
)

documents = sa.Table(
    "documents",
    metadata,
    sa.Column("owner", sa.String(200), primary_key=True),
    sa.Column("kind", sa.String(20), primary_key=True),
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("digest", sa.String(71), nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),  # in bytes, before it is compressed
    sa.Column("body", sa.LargeBinary, nullable=False),  # compressed
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
)

attachments = sa.Table(
    "attachments",
    metadata,
    sa.Column("carrier", sa.String(36), primary_key=True),  # a job or a batch
    sa.Column("kind", sa.String(20), primary_key=True),
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("digest", sa.String(71), nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),  # compressed
)
