"""Traces of requests and jobs for OpenTelemetry, where its standard variables ask for them.

The trace of a job has the job's own identity, without its hyphens, so that it is found by the job. Requests are in the
trace of whoever sent them, or in one of their own, and link to the job that they asked for.
"""

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import local
from typing import TYPE_CHECKING

from partita import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

LOG = logging.getLogger("partita.service")

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
EXPORTERS = ("otlp", "console")
MOST_PHASES = 200
"""The most phases of a job that are told; a search may have thousands."""

SPAN = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Phase:
    """Something that a job went through; the time is when it began, in seconds since 1970."""

    name: str
    at: float


@dataclass(frozen=True, slots=True)
class Life:
    """A job that has ended: when it was taken, begun and ended, its phases, and what it was."""

    job: str
    kind: str
    state: str
    attempt: int
    taken_at: float
    begun_at: float
    ended_at: float
    phases: Sequence[Phase]


class Traces:
    """Writes spans to an exporter, in the background.

    Parameters
    ----------
    exporter
        Where they go.
    service
        The name of the service; None where the environment has one.
    """

    def __init__(self, exporter: "SpanExporter", service: str | None) -> None:
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        named = local()

        class Identities(RandomIdGenerator):
            """Gives the root of a job the identity of the job."""

            def generate_trace_id(self) -> int:
                return getattr(named, "job", None) or super().generate_trace_id()

            def generate_span_id(self) -> int:
                job: int | None = getattr(named, "job", None)
                return super().generate_span_id() if job is None else job & SPAN

        about = {SERVICE_VERSION: __version__} | ({} if service is None else {SERVICE_NAME: service})
        self._provider = TracerProvider(
            resource=Resource.create(about), id_generator=Identities(), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("partita", __version__)
        self._named = named

    def job(self, life: Life) -> None:
        """Write the trace of a job: the time in the queue, the solve, and its phases."""
        from opentelemetry.trace import StatusCode, set_span_in_context

        self._named.job = uuid.UUID(life.job).int
        try:
            about: dict[str, str | int] = {
                "partita.kind": life.kind,
                "partita.state": life.state,
                "partita.attempt": life.attempt,
            }
            root = self._tracer.start_span("job", start_time=_ns(life.taken_at), attributes=about)
        finally:
            self._named.job = None
        inside = set_span_in_context(root)
        self._tracer.start_span("queued", inside, start_time=_ns(life.taken_at)).end(_ns(life.begun_at))
        solve = self._tracer.start_span("solve", inside, start_time=_ns(life.begun_at))
        phases = [Phase("read", life.begun_at), *life.phases[:MOST_PHASES]]
        ends = [phase.at for phase in phases[1:]] + [life.ended_at]
        for phase, end in zip(phases, ends, strict=True):
            span = self._tracer.start_span(phase.name, set_span_in_context(solve), start_time=_ns(phase.at))
            span.end(_ns(end))
        if life.state == "failed":
            root.set_status(StatusCode.ERROR)
        solve.end(_ns(life.ended_at))
        root.end(_ns(life.ended_at))

    def request(
        self,
        method: str,
        route: str,
        status: int,
        began: float,
        ended: float,
        headers: Mapping[str, str],
        job: str | None,
    ) -> None:
        """Write the span of a request; ``headers`` may hold the trace of its sender, ``job`` is what it asked for."""
        from opentelemetry.propagate import extract
        from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode, TraceFlags

        about: dict[str, str | int] = {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
        }
        links = []
        if job is not None:
            whole = uuid.UUID(job).int
            links = [Link(SpanContext(whole, whole & SPAN, is_remote=True, trace_flags=TraceFlags.get_default()))]
            about["partita.job"] = job
        span = self._tracer.start_span(
            f"{method} {route}", extract(headers), SpanKind.SERVER, about, links, start_time=_ns(began)
        )
        if status >= 500:
            span.set_status(StatusCode.ERROR)
        span.end(_ns(ended))

    def close(self) -> None:
        """Send what is not sent yet."""
        self._provider.shutdown()


def traces_from(environment: Mapping[str, str]) -> Traces | None:
    """Make what the variables of OpenTelemetry ask for; None, and nothing loaded, where they ask for nothing.

    Parameters
    ----------
    environment
        ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or its form for traces), or ``OTEL_TRACES_EXPORTER=console``, turn traces on;
        ``OTEL_TRACES_EXPORTER=none`` and ``OTEL_SDK_DISABLED=true`` turn them off. OpenTelemetry reads the others.
    """
    addressed = any(environment.get(name) for name in ENDPOINTS)
    chosen = environment.get("OTEL_TRACES_EXPORTER", "otlp" if addressed else "none")
    if chosen == "none" or environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if chosen not in EXPORTERS:
        LOG.warning("no traces: OTEL_TRACES_EXPORTER is %r; known are otlp, console and none", chosen)
        return None
    try:
        if chosen == "console":
            from opentelemetry.sdk.trace.export import ConsoleSpanExporter

            exporter: SpanExporter = ConsoleSpanExporter()
        else:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter()
    except ImportError:
        LOG.warning("no traces: OpenTelemetry is asked for but not installed; .venv/bin/pip install -e '.[otel]'")
        return None
    return Traces(exporter, None if environment.get("OTEL_SERVICE_NAME") else "partita")


def _ns(seconds: float) -> int:
    """Give a moment as OpenTelemetry has it."""
    return round(seconds * 1e9)
