"""One proposal is one trace, over the loop and the services that it calls."""

import json
import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archive_svc.archive import LocalArchive
from evaluator_svc.service import evaluator_service
from kernel_foundry.domain.evaluation import Evaluation, StageTime
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.mechanisms import SWEEPS
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.log_lines import JsonFormatter
from kernel_foundry.rpc.server import running
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.optimization import optimize
from kernel_foundry.sdk.services import Services
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from kernel_foundry.tracing import Trace, begin_tracing, trace_by, trace_headers

EVALUATIONS = 6


@pytest.fixture
def spans() -> Iterator[Any]:
    """What was exported meanwhile."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace_by(provider.get_tracer("test"))
    yield exporter
    trace_by(None)
    provider.shutdown()


class Staged(FakeEvaluator):
    """Its verdicts have stages."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        stages = (StageTime(stage="build", wall_ms=20.0), StageTime(stage="timing", wall_ms=5.0))
        return replace(await super().evaluate(request), stages=stages)


async def test_one_proposal_is_one_trace_with_its_stages(
    tmp_path: Path, archive: LocalArchive, spans: Any
) -> None:
    """From its selection to the archive; the evaluator's own span is a part of it."""
    async with running([evaluator_service(Staged())], f"unix:{tmp_path}/e.sock") as target:
        evaluator = RemoteEvaluator(target)
        services = Services(evaluator=evaluator, archive=archive, generator=FakeGenerator())
        ended = await optimize(
            services,
            Task(name="t", reference="class Model: ...", workloads=(Workload(name="default"),)),
            language=Language.SYCL,
            device="fake:0",
            models=(),
            budget=Budget(evaluations=EVALUATIONS),
            limits=EvaluationLimits(),
            without=(SWEEPS,),
            run="traced",
            listener=lambda _event: None,
        )
        await evaluator.close()
    by_trace = defaultdict(list)
    for span in spans.get_finished_spans():
        by_trace[span.context.trace_id].append(span)
    roots = [s for s in spans.get_finished_spans() if s.name == "proposal"]
    judged = [s for s in roots if s.attributes["outcome"] == "passed"]
    assert len(judged) == EVALUATIONS
    assert {s.attributes["run"] for s in roots} == {ended.run.spec.name}
    for root in judged:
        own = {span.name: span for span in by_trace[root.context.trace_id]}
        steps = ["select", "propose", "evaluate", "archive", "report"]
        assert {own[name].parent.span_id for name in steps} == {root.context.span_id}
        begins = [own[name].start_time for name in steps]
        assert begins == sorted(begins)
        evaluate = own["evaluate"].context.span_id
        assert {own[n].parent.span_id for n in ("build", "timing", "EvaluateKernel")} == {evaluate}
        assert own["build"].end_time == own["timing"].start_time
        assert own["build"].end_time - own["build"].start_time == 20_000_000
        assert own["EvaluateKernel"].kind.name == "SERVER"


def test_a_line_of_the_log_names_the_trace(spans: Any) -> None:
    """So that the log of a call is found from its trace."""
    record = logging.LogRecord("a", logging.INFO, "", 1, "said", (), None)
    trace = Trace("proposal", {})
    with trace.step("evaluate"):
        said = json.loads(JsonFormatter().format(record))
        header = dict(trace_headers())["traceparent"]
    trace.end()
    assert said["trace_id"] == header.split("-")[1]
    assert f"{spans.get_finished_spans()[-1].context.trace_id:032x}" == said["trace_id"]


def test_nothing_is_traced_unless_it_is_asked_for(tmp_path: Path) -> None:
    """Calls carry nothing more; a place that is none is said."""
    begin_tracing("loop", {})
    with Trace("proposal", {}).step("evaluate"):
        assert trace_headers() == ()
    for wrong in ("yes", f"file:{tmp_path}"):
        with pytest.raises(InvalidArgumentError, match="KERNEL_FOUNDRY_TRACES"):
            begin_tracing("loop", {"KERNEL_FOUNDRY_TRACES": wrong})
