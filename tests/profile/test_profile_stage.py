"""Profiles of real candidates on the CPU device, and which candidates have one."""

import asyncio
import dataclasses
from collections.abc import Callable

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.pipeline.profile.instruction_mix import instruction_mix
from evaluator_svc.pipeline.profile.profile_stage import leads
from kernel_foundry.domain.evaluation import Evaluation, StopReason, Timing, WorkloadResult
from kernel_foundry.domain.profile import PROFILE_SECONDS
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.domain.verdict_limits import LEAST_NS
from kernel_foundry.plan.candidate_text import split

REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, y):
        return torch.relu(x @ y)

def get_inputs():
    return [torch.randn(48, 64), torch.randn(64, 32)]

def get_init_inputs():
    return []
"""
TASK = Task(
    name="product_relu",
    reference=REFERENCE,
    workloads=(Workload(name="default"),),
    library_ops=("matmul",),
)
PLAN = """```python
def launch(x, y, out):
    product = ops.matmul(x, y)
    relu[cdiv(out.numel(), 64), 64](product, out, out.numel())
```
"""
ON_CPU = split(
    """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void relu(const float* __restrict__ from, float* __restrict__ to, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) to[i] = sycl::fmax(from[i], 0.0f);
}
```
"""
    + PLAN
)
ON_GPU = split(
    """```cuda
extern "C" __global__ void relu(const float* from, float* to, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = fmaxf(from[i], 0.0f);
}
```
"""
    + PLAN
)


@pytest.mark.sycl
def test_a_call_on_the_processor_has_counters_or_a_reason(
    local_evaluator: Callable[[str], LocalEvaluator],
) -> None:
    evaluator = local_evaluator("sycl")

    def judged(**others: object) -> Evaluation:
        request = EvaluationRequest(
            task=TASK,
            device="sycl:0",
            source=ON_CPU,
            limits=EvaluationLimits(timing_seconds=0.05),
        )
        return asyncio.run(evaluator.evaluate(dataclasses.replace(request, **others)))

    evaluation = judged(profile_seconds=1.0)

    assert evaluation.passed, evaluation.findings
    profile, result = evaluation.profile, evaluation.workloads[0]
    assert profile is not None
    assert result.call_bounds_ns is not None
    assert (profile.workload, profile.call_ns) == ("default", result.call_bounds_ns[1])
    assert profile.minimal_bytes == 4 * (48 * 64 + 64 * 32 + 48 * 32)
    assert {(k.kernel, k.is_library) for k in profile.kernels} == {
        ("relu", False),
        ("library calls", True),
    }
    assert sum(k.time_ns for k in profile.kernels) == pytest.approx(profile.call_ns)
    if profile.reason:
        assert (profile.tool, profile.counters) == ("", ())
        assert profile.reason.startswith("perf_event: ")
    else:
        assert {f.name for f in profile.counters} <= {"cycles", "instructions", "llc_misses"}
        assert all(f.value > 0 for f in profile.counters if f.name != "llc_misses")
    assert "profile" in {stage.stage for stage in evaluation.stages}
    (profiler,) = asyncio.run(evaluator.capabilities()).profilers
    assert profiler.kind == "sycl:0 perf_event"
    assert profiler.available == (not profiler.reason)

    behind = judged(profile_seconds=1.0, stop_above_ns=(LEAST_NS,))
    assert behind.profile is None


@pytest.mark.gpu
def test_a_call_on_a_gpu_has_counters_of_own_and_library_kernels(
    local_evaluator: Callable[[str], LocalEvaluator],
) -> None:
    request = EvaluationRequest(
        task=TASK,
        device="cuda:0",
        source=ON_GPU,
        limits=EvaluationLimits(timing_seconds=0.05),
        profile_seconds=PROFILE_SECONDS,
    )

    evaluation = asyncio.run(local_evaluator("cuda").evaluate(request))

    assert evaluation.passed, evaluation.findings
    profile = evaluation.profile
    assert profile is not None
    if profile.reason:
        kernel = next(k for k in profile.kernels if k.kernel == "relu")
        assert kernel.registers > 0
        assert {share.name for share in kernel.instructions} >= {"global memory", "branches"}
        pytest.skip(profile.reason)
    assert profile.tool == "ncu"
    assert {k.is_library for k in profile.kernels} == {False, True}
    own = next(k for k in profile.kernels if not k.is_library)
    assert own.kernel == "relu"
    assert {unit.name for unit in own.units} >= {"DRAM", "L2", "SM", "tensor pipe", "FMA pipe"}
    assert own.stalls
    assert own.occupancy is not None
    assert own.registers > 0
    assert {line.file for line in profile.lines} == {""}
    assert {line.line for line in profile.lines} <= {1, 2, 3, 4}
    assert any(line.stall for line in profile.lines)


def _result(time_ns: float) -> WorkloadResult:
    timing = Timing(
        samples_ns=(time_ns,),
        median_ns=time_ns,
        ci95_ns=(time_ns, time_ns),
        stop_reason=StopReason.CONVERGED,
        is_cold=True,
        warmup_count=0,
        discarded_count=0,
    )
    return WorkloadResult(workload="w", timing=timing)


@pytest.mark.parametrize(
    ("times", "incumbents", "expected"),
    [
        ((100.0,), (), True),
        ((109.0,), (100.0,), True),
        ((112.0,), (100.0,), False),
        ((120.0, 100.0), (100.0, 100.0), True),
        ((150.0, 100.0), (100.0, 100.0), False),
        ((150.0, 100.0), (0.0, 100.0), True),
    ],
)
def test_what_leads_takes_at_most_a_tenth_longer_than_the_best(
    times: tuple[float, ...], incumbents: tuple[float, ...], expected: bool
) -> None:
    assert leads([_result(time_ns) for time_ns in times], incumbents) == expected


def test_what_was_not_timed_does_not_lead() -> None:
    assert not leads([WorkloadResult(workload="w")], ())


PTX = """
.visible .entry other(.param .u64 p)
{
	ret;
}
.visible .entry scale(
	.param .u64 scale_param_0
)
{
	ld.param.u64 	%rd1, [scale_param_0];
	mov.u32 	%r1, %ctaid.x;
	@%p1 bra 	$L__BB0_2;
	ld.global.nc.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd1];
	fma.rn.f32 	%f5, %f1, %f2, %f3;
	fma.rn.f32 	%f6, %f5, %f2, %f3;
	mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 	{%f1}, {%r1}, {%r2}, {%f1};
	st.shared.f32 	[%r1], %f5;
	st.global.f32 	[%rd1], %f6;
$L__BB0_2:
	ret;
}
"""


def test_instructions_are_counted_by_kind_in_their_own_kernel() -> None:
    mix = {share.name: round(share.share * 10) for share in instruction_mix(PTX, "scale")}

    assert mix["global memory"] == mix["fused multiply-adds"] == mix["branches"] == 2
    assert {share.name for share in instruction_mix(PTX, "other")} == {"branches"}
    assert instruction_mix(PTX, "absent") == ()
