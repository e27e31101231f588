"""What this process has done, counted for Prometheus; with labels of which there are few, whatever comes in."""

from typing import TypedDict

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
GAPS = (0.0, 0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
LAYERS = (32, 128, 512, 2048)
"""Upper bounds of the classes of problems by their number of layers."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OTHER = "other"


class Census(TypedDict):
    """What the store knows of the whole service: jobs that wait and run, how long the oldest waits, and workers."""

    queued: int
    running: int
    oldest_queued_s: float
    workers: int


class Metrics:
    """The figures of one process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._requests = Counter("partita_requests", "Requests.", ("method", "route", "status"), registry=registry)
        self._request_s = Histogram(
            "partita_request_seconds", "Until a response begins.", ("route",), buckets=SECONDS, registry=registry
        )
        self._waits = Histogram(
            "partita_wait_seconds",
            "From a job's acceptance to its first solve.",
            ("kind",),
            buckets=SECONDS,
            registry=registry,
        )
        self._solves = Histogram(
            "partita_solve_seconds",
            "Solves that this process ran, by schedule and layers.",
            ("kind", "schedule", "layers"),
            buckets=SECONDS,
            registry=registry,
        )
        self._gaps = Histogram(
            "partita_relative_gap",
            "Gap between plan and bound at the end.",
            ("schedule",),
            buckets=GAPS,
            registry=registry,
        )
        self._ends = Counter("partita_solves_ended", "Solves by how they ended.", ("kind", "status"), registry=registry)
        self._hits = Counter(
            "partita_cache_hits",
            "Answers from the store: to the same request or problem.",
            ("same",),
            registry=registry,
        )
        self._failures = Counter(
            "partita_failures", "Jobs that failed, by kind of problem.", ("kind",), registry=registry
        )
        self._store = Gauge("partita_store_up", "Whether the store answered now.", registry=registry)
        self._jobs = Gauge(
            "partita_jobs", "Jobs of the whole service that have not ended.", ("state",), registry=registry
        )
        self._oldest = Gauge("partita_oldest_queued_seconds", "How long the oldest job has waited.", registry=registry)
        self._workers = Gauge("partita_workers", "Workers that show signs of life.", registry=registry)

    def requested(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request; ``route`` is the pattern of its path, None where there is none."""
        named = route or OTHER
        self._requests.labels(method if method in METHODS else OTHER, named, str(status)).inc()
        self._request_s.labels(named).observe(seconds)

    def waited(self, kind: str, seconds: float) -> None:
        """Count the wait of a job that begins for the first time."""
        self._waits.labels(kind).observe(max(0.0, seconds))

    def solved(
        self, kind: str, schedule: str, layers: int, status: str, seconds: float, gap: float | None = None
    ) -> None:
        """Count a solve that ended; a schedule without a name is that of a problem that was refused."""
        self._solves.labels(kind, schedule or OTHER, size_class(layers)).observe(seconds)
        self._ends.labels(kind, status).inc()
        if gap is not None:
            self._gaps.labels(schedule or OTHER).observe(gap)

    def found_in_store(self, same: str) -> None:
        """Count an answer that needed no solve: to the same ``request`` as it is written, or the same ``problem``."""
        self._hits.labels(same).inc()

    def failed(self, kind: str) -> None:
        """Count a job that failed."""
        self._failures.labels(kind).inc()

    def text(self, census: Census | None) -> bytes:
        """Write all figures as Prometheus reads them; None where the store does not answer."""
        self._store.set(census is not None)
        if census is None:
            self._jobs.clear()
        else:
            self._jobs.labels("queued").set(census["queued"])
            self._jobs.labels("running").set(census["running"])
            self._oldest.set(census["oldest_queued_s"])
            self._workers.set(census["workers"])
        return generate_latest(self.registry)


def size_class(layers: int) -> str:
    """Name the class of a number of layers."""
    return next((f"up to {most}" for most in LAYERS if layers <= most), f"over {LAYERS[-1]}") if layers else OTHER
