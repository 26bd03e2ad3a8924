"""A builder serves one configuration after the other, and binds them without a device."""

import pytest

from evaluator_svc.messages.builder import (
    CompileReply,
    CompileRequest,
    ReadCandidateReply,
    ReadCandidateRequest,
)
from evaluator_svc.messages.locked import CandidateFailure, WorkloadNames
from evaluator_svc.messages.runner import BindReply, BindRequest
from evaluator_svc.processes.forking import BUILDER
from kernel_foundry.domain.admission import NamedTensor, TensorRole
from kernel_foundry.domain.evaluation import EvaluationOutcome, Setting
from kernel_foundry.plan.candidate_text import split
from tests.domain_values import H200

DEVICE = H200
NAMES = WorkloadNames(
    workload="default",
    tensors=(
        NamedTensor(name="x", role=TensorRole.INPUT, dtype="float32", shape=(1000,)),
        NamedTensor(name="out", role=TensorRole.OUTPUT, dtype="float32", shape=(1000,)),
    ),
    scalars=(),
)
TEXT = """```cuda
extern "C" __global__ void relu(const float* __restrict__ x, float* __restrict__ out, int count) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < count) out[i] = fmaxf(x[i], 0.0f);
}
```
```python
TUNE = {"BLOCK": [128, 256]}

def launch(x, out):
    require(BLOCK != 192)
    relu[cdiv(x.numel(), BLOCK), BLOCK](x, out, x.numel())
```
"""


@pytest.fixture
def builder(starter):
    process, ready = starter.start(BUILDER, kind="cuda", index=0, architecture="sm_90")
    if ready.unavailable:
        pytest.skip(f"NVRTC: {ready.unavailable}")
    assert ready.device is None
    assert ready.compiler_version
    yield process
    process.kill()


def _read(process, block: str, text: str = TEXT):
    request = ReadCandidateRequest(
        source=split(text),
        configuration=(Setting(name="BLOCK", value=block),),
        device=DEVICE,
        workloads=(NAMES,),
    )
    return process.ask(request, ReadCandidateReply, CandidateFailure, timeout_seconds=60.0).message


def test_one_builder_builds_and_binds_every_configuration(builder):
    """Object code differs with the configuration, and so do the groups."""
    codes, groups = set(), []
    for block in ("128", "256"):
        assert isinstance(_read(builder, block), ReadCandidateReply)
        built = builder.ask(CompileRequest(unit=0), CompileReply, timeout_seconds=60.0)
        assert built.message.succeeded, built.message.log
        code, assembly = built.blobs
        assert b".visible .entry relu" in assembly
        codes.add(code)
        bound = builder.ask(BindRequest(), BindReply, timeout_seconds=60.0).message.workloads[0]
        groups.append((bound.group_count, bound.group_size))
    assert len(codes) == 2
    assert groups == [(8, 128), (4, 256)]


def test_a_refusal_does_not_end_a_builder(builder):
    """The next configuration is read as if nothing had been."""
    refused = _read(builder, "128", text=TEXT.replace("def launch", "def lunch"))
    assert refused.outcome is EvaluationOutcome.PLAN_ERROR
    assert isinstance(_read(builder, "256"), ReadCandidateReply)


def test_a_plan_that_does_not_bind_is_refused_without_a_device(builder):
    """What the runner would say is known before there is one."""
    text = TEXT.replace("x, out, x.numel())\n```", "x, out, 2 ** 40)\n```")
    assert isinstance(_read(builder, "128", text=text), ReadCandidateReply)
    failed = builder.ask(BindRequest(), BindReply, CandidateFailure, timeout_seconds=60.0).message
    assert failed.outcome is EvaluationOutcome.PLAN_ERROR
