"""A client without our package may send a candidate as Markdown."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from evaluator_svc.service import evaluator_service
from kernel_foundry.common.v1 import candidate_pb2, evaluation_pb2
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE, KernelSource
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.language import Language
from kernel_foundry.evaluator.v1 import evaluator_service_pb2 as pb2
from kernel_foundry.evaluator.v1.evaluator_service_pb2_grpc import EvaluatorServiceStub
from kernel_foundry.plan.candidate_text import render
from kernel_foundry.rpc.server import running
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.wire.message import to_message

SOURCE = KernelSource(
    language=Language.CUDA,
    device_code='extern "C" __global__ void k() {}',
    plan="def launch(x, out):\n    k[1, 1]()",
)
ASKED: dict[str, Any] = {"task": {"reference": "class Model: ..."}, "device": "fake:0"}
FAILED = evaluation_pb2.EvaluationOutcome.EVALUATION_OUTCOME_EXTRACTION_FAILED


@pytest.fixture
async def stub(tmp_path: Path) -> AsyncIterator[EvaluatorServiceStub]:
    listen = f"unix:{tmp_path}/evaluator.sock"
    async with (
        running([evaluator_service(FakeEvaluator())], listen),
        grpc.aio.insecure_channel(listen) as channel,
    ):
        yield EvaluatorServiceStub(channel)


async def test_a_text_is_judged_as_its_source(stub: Any) -> None:
    text = f"Here it is:\n{render(SOURCE)}"
    answer = await stub.EvaluateKernel(pb2.EvaluateKernelRequest(request=ASKED, text=text))
    source = to_message(SOURCE, candidate_pb2.KernelSource)
    again = await stub.EvaluateKernel(
        pb2.EvaluateKernelRequest(request={**ASKED, "source": source})
    )
    assert answer.evaluation.candidate == SOURCE.digest
    assert answer == again
    swept = [a async for a in stub.SweepKernel(pb2.SweepKernelRequest(request=ASKED, text=text))]
    assert len(swept) == 1
    assert swept[0].result.speedup > 0


@pytest.mark.parametrize("text", ["no blocks at all", "```python\npass\n```", "\x00ü😀\n" * 1000])
async def test_a_text_without_candidate_is_a_verdict(stub: Any, text: str) -> None:
    """Whatever a model replies is data."""
    answer = await stub.EvaluateKernel(pb2.EvaluateKernelRequest(request=ASKED, text=text))
    verdict = answer.evaluation
    assert (verdict.outcome, verdict.candidate) == (FAILED, content_digest(text))
    assert verdict.device == "fake:0"
    assert verdict.fitness == 0
    assert "no block of device code" in verdict.findings[0].message
    request = pb2.SweepKernelRequest(request=ASKED, text=text)
    (swept,) = [answer async for answer in stub.SweepKernel(request)]
    assert (swept.result.outcome, swept.result.total) == (FAILED, 1)
    assert swept.result.findings == verdict.findings


async def test_a_candidate_comes_once_and_bounded(stub: Any) -> None:
    source = to_message(SOURCE, candidate_pb2.KernelSource)
    both = pb2.EvaluateKernelRequest(request={**ASKED, "source": source}, text=render(SOURCE))
    neither = pb2.EvaluateKernelRequest(request=ASKED)
    long = pb2.EvaluateKernelRequest(request=ASKED, text="`" * (LONGEST_CANDIDATE + 1))
    for request, message in ((both, "as well"), (neither, "source"), (long, "at most")):
        with pytest.raises(grpc.aio.AioRpcError, match=message) as caught:
            await stub.EvaluateKernel(request)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
