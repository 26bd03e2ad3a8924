"""Lessons, elites and transitions that the experience tests build their cases from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator_svc.experience.transition import ObservedTransition
from kernel_foundry.domain.admission import (
    Admission,
    NamedTensor,
    TensorRole,
    WorkloadAdmission,
)
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.evaluation import (
    CompileReport,
    Evaluation,
    EvaluationOutcome,
    WorkloadResult,
)
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonOrigin
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.domain.task import Task, Tolerance, Workload
from tests.domain_values import H200, timing_of, workload_admission

HIDDEN = "rows=3,cols=1001"

SCALAR = """\
extern "C" __global__ void scale(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];
}
"""
VECTOR = """\
extern "C" __global__ void scale(const float4* x, float4* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  out[i] = make_float4(2.0f * v.x, 2.0f * v.y, 2.0f * v.z, 2.0f * v.w);
}
"""
PLAN = "def launch(x, out):\n    scale[cdiv(x.numel(), 256), 256](x, out, x.numel())\n"
VECTOR_PLAN = PLAN.replace("x.numel()", "x.numel() // 4")


def lesson(**changes: Any) -> Lesson:
    """Return a lesson, alike for all but `changes`."""
    fields: dict[str, Any] = {
        "symptom": "Passes over shared memory are repeated because of bank conflicts.",
        "move": "Pad each row of the tile by one element.",
        "language": Language.CUDA,
        "findings": (FindingKind.BANK_CONFLICT,),
        "source": "a manual",
        "origin": LessonOrigin.USER,
    }
    return Lesson(**{**fields, **changes})


def finding(kind: FindingKind, message: str, severity: Severity = Severity.INFO) -> Finding:
    return Finding(kind=kind, severity=severity, message=message)


def evaluation(
    source: KernelSource,
    *,
    median_ns: float | None = 1000.0,
    noise: float = 0.01,
    findings: tuple[Finding, ...] = (),
    measures: Measures = Measures(memory=0, algorithm=0, synchronization=0),  # noqa: B008
    outcome: EvaluationOutcome = EvaluationOutcome.PASSED,
) -> Evaluation:
    """Return a verdict; its median is known to ± `noise`."""
    workloads: tuple[WorkloadResult, ...] = ()
    if outcome is EvaluationOutcome.PASSED and median_ns is not None:
        timing = timing_of(median_ns, half_width=noise)
        workloads = (WorkloadResult(workload="default", timing=timing),)
    return Evaluation(
        candidate=source.digest,
        task="t",
        device="cuda:0",
        outcome=outcome,
        compile=CompileReport(log="", compile_ns=1.0, cached=False, object_bytes=1),
        workloads=workloads,
        measures=measures,
        findings=findings,
    )


def source(code: str = SCALAR, plan: str = PLAN) -> KernelSource:
    return KernelSource(language=Language.CUDA, device_code=code, plan=plan)


def transition(
    parent: Evaluation,
    child: Evaluation,
    *,
    sources: tuple[KernelSource, KernelSource] = (source(), source(VECTOR, VECTOR_PLAN)),
    target: Measures | None = None,
    hint: str = "",
    shown: tuple[int, ...] = (),
    run: str = "first",
) -> ObservedTransition:
    """Return the transition between two verdicts, for a task with a hidden workload."""
    task = Task(
        name="scale_by_two",
        reference="class Model: ...",
        workloads=(Workload(name="default"), Workload(name=HIDDEN, held_out=True)),
    )
    elite = Elite(
        candidate=Candidate(source=sources[0]),
        evaluation=parent,
        fitness=0.5,
        measures=parent.measures or Measures(memory=0, algorithm=0, synchronization=0),
    )
    request = ProposalRequest(
        run=run,
        task=task,
        admission=Admission(
            task=task.digest,
            device=_DEVICE,
            workloads=(_admitted("default", (4096, 4096)), _admitted(HIDDEN, (3, 1001))),
            tolerance=Tolerance(rtol=1e-4, atol=1e-5),
        ),
        selection=Selection(
            operator=Operator.MUTATE, parent=elite, target=target, hint=hint, island="memory"
        ),
        models=(),
        seed=1,
    )
    return ObservedTransition(
        run=run,
        request=request,
        child=Candidate(source=sources[1], parents=(sources[0].digest,)),
        evaluation=child,
        shown=shown,
    )


def _admitted(name: str, shape: tuple[int, ...]) -> WorkloadAdmission:
    tensor = NamedTensor(name="x", role=TensorRole.INPUT, dtype="float32", shape=shape)
    return workload_admission(
        name,
        held_out=name == HIDDEN,
        tensors=(tensor, replace(tensor, name="out", role=TensorRole.OUTPUT)),
    )


_DEVICE = H200


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """URL of an empty SQLite store."""
    return f"sqlite:///{tmp_path / 'generator.db'}"
