"""Traces of proposals, by OpenTelemetry; off unless KERNEL_FOUNDRY_TRACES says where they go.

One proposal is one trace: selected, proposed, evaluated with its stages, archived. Services that
are called meanwhile add their spans to it. While tracing is off, nothing here costs anything and no
package is needed.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from kernel_foundry.errors import InvalidArgumentError, PackageMissingError
from kernel_foundry.whole_file import writing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

VARIABLE: Final = "KERNEL_FOUNDRY_TRACES"
"""`otlp`, to the collector that OpenTelemetry's own variables name, or `file:PATH`."""

_FILE: Final = "file:"
_NS_PER_MS: Final = 1e6
_LIBRARY: Final = "kernel_foundry"

Attributes: TypeAlias = Mapping[str, str | int | float | bool]


class _Tracing:
    """Whether spans are made, and by what."""

    def __init__(self) -> None:
        self.tracer: Any = None
        """OpenTelemetry's; None: off."""


_TRACING: Final = _Tracing()


def begin_tracing(service: str, environment: Mapping[str, str] = os.environ) -> None:
    """Begin to make spans, if the environment asks for them and they are not made yet.

    Args:
        service: What made them, such as "evaluator".
        environment: Has `VARIABLE`.

    Raises:
        InvalidArgumentError: the variable says neither, or the file cannot be written.
        PackageMissingError: the extra is not installed.
    """
    where = environment.get(VARIABLE, "")
    if not where or _TRACING.tracer is not None:
        return
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise PackageMissingError(
            f"{VARIABLE} needs the extra: pip install 'kernel-foundry[observability]'",
            package="opentelemetry-sdk",
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": f"kfoundry-{service}"}))
    # What waits is sent at the end of the process, by the provider's own handler.
    provider.add_span_processor(BatchSpanProcessor(_exporter(where)))
    _TRACING.tracer = provider.get_tracer(_LIBRARY)


def is_tracing() -> bool:
    """Return whether spans are made."""
    return _TRACING.tracer is not None


def trace_by(tracer: Any) -> None:
    """Make spans by a tracer of one's own, as a program that traces already has one; None: none."""
    _TRACING.tracer = tracer


def _exporter(where: str) -> "SpanExporter":
    if where == "otlp":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    if where.startswith(_FILE):
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(
            out=_opened(Path(where.removeprefix(_FILE))),
            formatter=lambda span: span.to_json(indent=None) + "\n",
        )
    raise InvalidArgumentError(
        f"{VARIABLE}={where[:80]!r}: expected otlp or file:PATH", field="traces"
    )


def _opened(path: Path) -> IO[str]:
    with writing(f"{VARIABLE}: {path}", field="traces"):
        # Whole lines: several processes may add to one file.
        return path.open("a", encoding="utf-8", buffering=1)


class Trace:
    """One trace from its begin to its end, in whichever task its steps are made.

    Args:
        name: Of the whole.
        attributes: What is known at its begin.
    """

    def __init__(self, name: str, attributes: Attributes) -> None:
        self._span: Any = None
        self._context: Any = None
        if _TRACING.tracer is not None:
            from opentelemetry import context, trace

            # A trace of its own, whatever is going on around it.
            self._span = _TRACING.tracer.start_span(
                name, context=context.Context(), attributes=dict(attributes)
            )
            self._context = trace.set_span_in_context(self._span, context.Context())

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Make a span of the block; calls in it carry the trace."""
        if self._span is None:
            yield
            return
        with _TRACING.tracer.start_as_current_span(name, context=self._context):
            yield

    def end(self, **attributes: str | int | float | bool) -> None:
        """End the whole, with what is known of it now."""
        if self._span is not None:
            self._span.set_attributes(attributes)
            self._span.end()


NO_TRACE: Final = Trace("none", {})
"""Of what nobody traces: it is made before tracing can begin."""


def add_stages(stages: Sequence[tuple[str, float]]) -> None:
    """Add what the block's span was spent on, one after the other, ending now.

    Args:
        stages: Names, and wall times in milliseconds.
    """
    if _TRACING.tracer is None:
        return
    at_ns = time.time_ns() - int(sum(ms for _, ms in stages) * _NS_PER_MS)
    for name, wall_ms in stages:
        span = _TRACING.tracer.start_span(name, start_time=at_ns)
        at_ns += int(wall_ms * _NS_PER_MS)
        span.end(end_time=at_ns)


def trace_headers() -> tuple[tuple[str, str], ...]:
    """Return the metadata by which a call carries the current span to a service."""
    if _TRACING.tracer is None:
        return ()
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return tuple(carrier.items())


@contextlib.contextmanager
def served(method: str, headers: Mapping[str, str]) -> Iterator[None]:
    """Make a span of a call that a service answers, as a part of the caller's trace."""
    if _TRACING.tracer is None:
        yield
        return
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    caller = TraceContextTextMapPropagator().extract(dict(headers))
    with _TRACING.tracer.start_as_current_span(method, context=caller, kind=SpanKind.SERVER):
        yield


def current_trace_id() -> str:
    """Return the id of the trace that is going on here, 32 digits; "" for none."""
    if _TRACING.tracer is None:
        return ""
    from opentelemetry import trace

    found = trace.get_current_span().get_span_context()
    return f"{found.trace_id:032x}" if found.is_valid else ""
