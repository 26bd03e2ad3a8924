"""Builders of verdicts for archive tests: real domain objects, made-up times."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.evaluation import (
    Baseline,
    CompileReport,
    Evaluation,
    EvaluationOutcome,
    Timing,
    WorkloadResult,
)
from kernel_foundry.domain.fitness import fitness_bounds
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.task import Task, Workload
from tests.domain_values import run_spec, timing_of

TASK = Task(name="softmax", reference="...", workloads=(Workload(name="default"),))


@pytest.fixture(scope="session")
def task() -> Task:
    """A task nobody runs: the archive only stores it."""
    return TASK


@pytest.fixture(scope="session")
def spec(task: Task) -> RunSpec:
    return run_spec("first", task=task, device="sycl:0", models=("recipes",), seed=1)


def make_candidate(
    label: str, *, parent: str = "", operator: Operator = Operator.SEED
) -> Candidate:
    """Return a candidate whose digest depends on `label` alone."""
    source = KernelSource(language=Language.SYCL, device_code=f"// {label}", plan="")
    return Candidate(source=source, parents=(parent,) if parent else (), operator=operator)


def make_timing(median_ns: float, half_width: float = 0.001) -> Timing:
    return timing_of(median_ns, half_width=half_width)


def make_evaluation(
    candidate: Candidate,
    *,
    median_ns: float | None = None,
    cell: tuple[int, int, int] = (0, 0, 0),
    outcome: EvaluationOutcome = EvaluationOutcome.PASSED,
    half_width: float = 0.001,
) -> Evaluation:
    """Return a verdict: PASSED at `median_ns` against a baseline of 1000 ns, or `outcome`."""
    result = WorkloadResult(
        workload="default",
        timing=make_timing(median_ns, half_width) if median_ns else None,
        baselines=(Baseline(name="eager", timing=make_timing(1000.0)),),
        traffic_bound_ns=100.0,
        arithmetic_estimate_ns=100.0,
    )
    evaluation = Evaluation(
        candidate=candidate.digest,
        task=TASK.digest,
        device="sycl:0",
        outcome=outcome,
        compile=CompileReport(log="", compile_ns=1.0, cached=False, object_bytes=10),
        workloads=(result,),
        measures=Measures(memory=cell[0], algorithm=cell[1], synchronization=cell[2]),
    )
    certain, best = fitness_bounds(evaluation, {"default": 1000.0})
    return replace(evaluation, fitness=certain, optimistic_fitness=best)


@pytest.fixture
def make() -> Callable[..., tuple[Candidate, Evaluation]]:
    """Return a builder of (candidate, evaluation) pairs."""

    def build(label: str, **verdict: object) -> tuple[Candidate, Evaluation]:
        candidate = make_candidate(label)
        return candidate, make_evaluation(candidate, **verdict)  # type: ignore[arg-type]

    return build
