"""Each piece of work has a line at its begin and one at its end, also where it fails."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.service import evaluator_service
from evaluator_svc.work_log import logged
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.log_lines import JsonFormatter
from kernel_foundry.rpc.server import running
from kernel_foundry.tracing import Trace, current_trace_id, trace_by
from tests.evaluator.test_several_devices import LIMITS, REFERENCE, RELU
from tests.shared_evaluator import Shared

RELU_TASK = Task(name="relu", reference=REFERENCE, workloads=(Workload(name="default"),))
REQUEST: dict[str, Any] = {
    "task": RELU_TASK,
    "device": "",
    "source": split(RELU),
    "limits": LIMITS,
}
TASK = Task(name="relu", reference="class Model: ...", workloads=(Workload(name="default"),))


def test_begin_and_end_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "evaluator_svc"):
        with logged("admission", TASK, "null:0") as ended:
            ended("admitted")
        with pytest.raises(KeyError), logged("verdict on 1f0c9a7e", TASK, "null:0"):
            raise KeyError
    lines = [
        record.getMessage().rpartition(",")[0] or record.getMessage() for record in caplog.records
    ]
    assert lines == [
        "admission of relu on null:0 begins",
        "admission of relu on null:0: admitted",
        "verdict on 1f0c9a7e of relu on null:0 begins",
        "verdict on 1f0c9a7e of relu on null:0: failed",
    ]


@pytest.fixture
def traced() -> Iterator[None]:
    from opentelemetry.sdk.trace import TracerProvider

    provider = TracerProvider()
    trace_by(provider.get_tracer("test"))
    yield
    trace_by(None)
    provider.shutdown()


async def test_lines_of_a_verdict_name_its_trace_and_its_request(
    local_evaluator: Callable[[str], LocalEvaluator],
    tmp_path: Path,
    traced: None,
) -> None:
    """They are said in threads; two verdicts at once are told apart."""
    lines = StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("evaluator_svc")
    logger.addHandler(handler)
    asked = {name: REQUEST | {"request_id": uuid4().hex} for name in ("one", "other")}
    service = evaluator_service(Shared(local_evaluator("null")))
    async with running([service], f"unix:{tmp_path}/s") as target:
        remote = RemoteEvaluator(target)

        async def judge(name: str) -> str:
            trace = Trace(name, {})
            with trace.step("evaluate"):
                trace_id = current_trace_id()
                await remote.evaluate(EvaluationRequest(**asked[name]))
            trace.end()
            return trace_id

        level = logger.level
        logger.setLevel(logging.INFO)
        try:
            traces = await asyncio.gather(*map(judge, asked))
        finally:
            logger.setLevel(level)
            logger.removeHandler(handler)
            await remote.close()
    said = [json.loads(line) for line in lines.getvalue().splitlines()]
    verdicts = [line for line in said if line["message"].startswith("verdict")]
    assert sorted((line["trace_id"], line["request_id"]) for line in verdicts) == sorted(
        2
        * [
            (trace_id, request["request_id"])
            for trace_id, request in zip(traces, asked.values(), strict=True)
        ]
    )
