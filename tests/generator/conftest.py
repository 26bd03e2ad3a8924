"""A small task, its admission, elites and scripted models that the generator tests share."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from generator_svc.exchange_log import ExchangeLog
from generator_svc.experience.library import ExperienceLibrary
from generator_svc.generator import LocalGenerator
from generator_svc.llm.interface import ModelFacts, ModelReply, ModelRequest
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.admission import (
    Admission,
    NamedScalar,
    NamedTensor,
    TensorRole,
    WorkloadAdmission,
)
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.evaluation import (
    Baseline,
    CompileReport,
    Evaluation,
    EvaluationOutcome,
    WorkloadResult,
)
from kernel_foundry.domain.exchange import FinishReason
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.profile import Profile
from kernel_foundry.domain.request import ProposalRequest, TokenUsage
from kernel_foundry.domain.task import Task, Tolerance, Workload
from tests.domain_values import CPU, timing_of, workload_admission

REFERENCE = """\
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
"""
DEVICE_CODE = """\
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void copy_all(const float* x, float* out, int count) {}"""
PLAN = """\
def launch(x, out):
    copy_all[1, 1](x, out, x.numel())"""
REPLY = f"Here it is.\n```sycl\n{DEVICE_CODE}\n```\n```python\n{PLAN}\n```\n"
HELD_OUT = "rows=3,cols=1001"


def workload(name: str, shape: tuple[int, ...], *, held_out: bool = False) -> WorkloadAdmission:
    """Return the admission of a softmax over `shape`."""
    baselines = () if held_out else (Baseline(name="eager", timing=timing_of(2.6e6)),)
    return workload_admission(
        name,
        held_out=held_out,
        tensors=(
            NamedTensor(name="x", role=TensorRole.INPUT, dtype="float32", shape=shape),
            NamedTensor(name="out", role=TensorRole.OUTPUT, dtype="float32", shape=shape),
        ),
        scalars=(NamedScalar(name="temperature", literal="0.5"),),
        flops=1_000_000,
        minimal_bytes=2 * 4 * math.prod(shape),
        traffic_bound_ns=1e6,
        arithmetic_estimate_ns=1e6,
        baselines=baselines,
    )


def source(mark: str) -> KernelSource:
    """Return a source that `mark` tells from others."""
    return KernelSource(language=Language.SYCL, device_code=f"// {mark}\n{DEVICE_CODE}", plan=PLAN)


def passed_elite(
    mark: str,
    generation: int = 0,
    kernel_times: tuple[KernelTime, ...] = (),
    profile: Profile | None = None,
) -> Elite:
    """Return a correct candidate, twice as fast as eager."""
    candidate = Candidate(source=source(mark), generation=generation)
    measures = Measures(memory=1, algorithm=0, synchronization=0)
    evaluation = Evaluation(
        candidate=candidate.digest,
        task="t",
        device="sycl:0",
        outcome=EvaluationOutcome.PASSED,
        compile=CompileReport(log="", compile_ns=1.0, cached=False, object_bytes=1),
        workloads=(
            WorkloadResult(
                workload="default",
                timing=timing_of(1.3e6),
                baselines=(Baseline(name="eager", timing=timing_of(2.6e6)),),
                traffic_bound_ns=1e6,
                arithmetic_estimate_ns=2e5,
                kernel_times=kernel_times,
            ),
            WorkloadResult(workload=HELD_OUT, held_out=True),
        ),
        measures=measures,
        findings=(
            Finding(
                kind=FindingKind.MEMORY_BOUND,
                severity=Severity.INFO,
                message="bandwidth limits it",
                evidence=(Figure(name="bandwidth_share", value=0.77),),
                hint="read less",
            ),
        ),
        profile=profile,
    )
    return Elite(candidate=candidate, evaluation=evaluation, fitness=0.6, measures=measures)


def failed_elite(mark: str, log: str = "kernel.cpp:7:3: error: unknown type") -> Elite:
    candidate = Candidate(source=source(mark), generation=4)
    measures = Measures(memory=0, algorithm=0, synchronization=0)
    evaluation = Evaluation(
        candidate=candidate.digest,
        task="t",
        device="sycl:0",
        outcome=EvaluationOutcome.COMPILE_ERROR,
        compile=CompileReport(log=log, compile_ns=1.0, cached=False, object_bytes=0),
        findings=(
            Finding(
                kind=FindingKind.COMPILE_ERROR,
                severity=Severity.ERROR,
                message=f"unknown type, seen on {HELD_OUT}",
                line=7,
            ),
        ),
    )
    return Elite(candidate=candidate, evaluation=evaluation, fitness=0.0, measures=measures)


class Samples:
    """Everything of this file that tests build their cases from."""

    DEVICE_CODE, PLAN, REPLY, HELD_OUT = DEVICE_CODE, PLAN, REPLY, HELD_OUT
    passed_elite = staticmethod(passed_elite)
    failed_elite = staticmethod(failed_elite)
    workload = staticmethod(workload)


@pytest.fixture
def samples() -> Samples:
    """Return the builders of this file."""
    return Samples()


@pytest.fixture
def request_() -> ProposalRequest:
    task = Task(
        name="softmax",
        reference=REFERENCE,
        workloads=(
            Workload(name="default"),
            Workload(name=HELD_OUT, held_out=True),
        ),
        instructions="Prefer few kernels.",
    )
    device = replace(
        CPU,
        name="Test CPU",
        vendor="ACME",
        architecture="x86-64",
        peaks=Peaks(
            bandwidth_bytes_per_second=21.5e9,
            cache_bandwidth_bytes_per_second=80e9,
            flops_per_second=150e9,
            launch_ns=13_000.0,
            read_bandwidth_bytes_per_second=24e9,
        ),
    )
    admission = Admission(
        task=task.digest,
        device=device,
        workloads=(
            workload("default", (2048, 4096)),
            workload(HELD_OUT, (3, 1001), held_out=True),
        ),
        tolerance=Tolerance(rtol=1e-4, atol=1e-5),
    )
    return ProposalRequest(
        run="r",
        task=task,
        admission=admission,
        selection=Selection(operator=Operator.SEED),
        models=("scripted",),
        seed=1,
    )


@dataclass(kw_only=True)
class ScriptedModels:
    """`LanguageModels` that answer with prepared replies or raise prepared errors, in order."""

    script: list[str | ModelReply | Exception]
    asked: list[ModelRequest] = field(default_factory=list)
    is_closed: bool = False

    async def check(self, models: tuple[str, ...]) -> None:
        """Accept every model."""

    async def facts(self, model: str) -> ModelFacts:
        """Return the same facts for every model."""
        return ModelFacts(
            input_usd_per_token=1e-6, output_usd_per_token=1e-5, max_output_tokens=1000
        )

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Play the next entry of the script."""
        self.asked.append(request)
        entry = self.script.pop(0)
        if isinstance(entry, Exception):
            raise entry
        return reply(entry) if isinstance(entry, str) else entry

    async def list_models(self) -> tuple[str, ...]:
        return ("scripted",)

    async def close(self) -> None:
        """Remember the call."""
        self.is_closed = True


def reply(text: str, finish: FinishReason = FinishReason.STOP) -> ModelReply:
    usage = TokenUsage(
        model="scripted", input_tokens=100, output_tokens=50, cost_usd=0.01, latency_ms=1.0
    )
    return ModelReply(text=text, finish=finish, usage=usage)


MakeGenerator = Callable[
    [Iterable[str | ModelReply | Exception]], tuple[LocalGenerator, ScriptedModels]
]


@pytest.fixture
def exchanges(tmp_path: Path) -> ExchangeLog:
    return ExchangeLog(tmp_path / "exchanges")


@pytest.fixture
def make_generator(exchanges: ExchangeLog, tmp_path: Path) -> MakeGenerator:
    """Return a maker of generators whose model plays a script."""

    def make(
        script: Iterable[str | ModelReply | Exception],
    ) -> tuple[LocalGenerator, ScriptedModels]:
        models = ScriptedModels(script=list(script))
        store = GeneratorStore(f"sqlite:///{tmp_path / 'generator.db'}")
        generator = LocalGenerator(
            models=models,
            store=store,
            exchanges=exchanges,
            library=ExperienceLibrary(store),
            clock=lambda: 5.0,
        )
        return generator, models

    return make
