"""What a client says is in range before anything is built, and before it is a part of a verdict."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.pipeline.evaluation_draft import draft_of
from evaluator_svc.requests.request_limits import check_asked_task, check_evaluation, check_sweep
from evaluator_svc.requests.verdicts import Verdicts
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import EvaluationOutcome, Setting, WorkloadResult
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest, Yardstick
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.domain.task import Size, Task, Tolerance, Workload
from kernel_foundry.domain.task_limits import check_task
from kernel_foundry.errors import InvalidArgumentError

TASK = Task(name="t", reference="class Model: ...\n")
SOURCE = KernelSource(language=Language.SYCL, device_code="", plan="")
REQUEST = EvaluationRequest(task=TASK, device="", source=SOURCE)
SWEEP = SweepRequest(task=TASK, device="", source=SOURCE)
NO_NUMBERS = (math.nan, math.inf, -math.inf, -1.0, 1e308)


def _field(check: Callable[[Any], None], value: object) -> str:
    with pytest.raises(InvalidArgumentError) as refused:
        check(value)
    assert len(refused.value.message) < 500
    return refused.value.metadata["field"]


def test_what_loops_ask_is_taken() -> None:
    check_evaluation(REQUEST)
    yardsticks = (Yardstick(workload="default", time_ns=1e6),)
    check_evaluation(replace(REQUEST, yardsticks=yardsticks, stop_above_ns=(0.0,)))
    check_evaluation(replace(REQUEST, source=replace(SOURCE, plan="x" * (1 << 20))))
    check_sweep(SWEEP)
    sizes = tuple(Size(name=f"in_channels_{i}", value=1 << 20) for i in range(8))
    name = ",".join(f"{size.name}={size.value}" for size in sizes)
    check_task(replace(TASK, workloads=(Workload(name=name, sizes=sizes),)))
    check_task(replace(TASK, tolerance=Tolerance(rtol=0.0, atol=1e-6), least_bits=11.0))


@pytest.mark.parametrize("figure", [*NO_NUMBERS, 0.0, 1e-9, 1e16])
def test_a_yardstick_that_nobody_measures_is_refused(figure: float) -> None:
    """Fitness rests on it, and is signed."""
    given = (Yardstick(workload="default", time_ns=figure),)
    assert _field(check_evaluation, replace(REQUEST, yardsticks=given)) == "yardsticks.time_ns"


def test_what_would_be_ignored_is_refused() -> None:
    """An architecture is for builds alone, and a library call has a name that there is."""
    built = replace(REQUEST, architecture="sm_90", build_only=True)
    check_evaluation(built)
    assert _field(check_evaluation, replace(built, build_only=False)) == "architecture"
    for names in (("none",), ("linear", "conv2d")):
        check_asked_task(replace(TASK, library_ops=names))
    unknown = replace(TASK, library_ops=("linear", "foo"))
    with pytest.raises(InvalidArgumentError, match=r"'foo'; known are .*conv2d"):
        check_asked_task(unknown)
    for check, request in ((check_evaluation, REQUEST), (check_sweep, SWEEP)):
        assert _field(check, replace(request, task=unknown)) == "task.library_ops"


def test_a_yardstick_of_no_workload_is_refused() -> None:
    unknown = (Yardstick(workload="other", time_ns=1e6),)
    assert _field(check_evaluation, replace(REQUEST, yardsticks=unknown)) == "yardsticks"
    twice = (Yardstick(workload="default", time_ns=1e6),) * 2
    assert _field(check_evaluation, replace(REQUEST, yardsticks=twice)) == "yardsticks"


@pytest.mark.parametrize("figure", [*NO_NUMBERS, 0.0])
@pytest.mark.parametrize("name", ["build_seconds", "run_seconds", "timing_seconds"])
def test_a_limit_that_is_none_is_refused(name: str, figure: float) -> None:
    limits = replace(EvaluationLimits(), **{name: figure})
    assert _field(check_evaluation, replace(REQUEST, limits=limits)) == f"limits.{name}"
    assert _field(check_sweep, replace(SWEEP, limits=limits)) == f"limits.{name}"


@pytest.mark.parametrize("figure", NO_NUMBERS)
def test_other_figures_are_finite_and_in_range(figure: float) -> None:
    stop = replace(REQUEST, stop_above_ns=(figure,))
    assert _field(check_evaluation, stop) == "stop_above_ns"
    assert _field(check_sweep, replace(SWEEP, seconds=figure)) == "seconds"
    for name in ("rtol", "atol"):
        tolerance = replace(Tolerance(rtol=1e-5, atol=1e-5), **{name: figure})
        field = _field(check_task, replace(TASK, tolerance=tolerance))
        assert field == f"task.tolerance.{name}"
    assert _field(check_task, replace(TASK, least_bits=figure)) == "task.least_bits"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"source": replace(SOURCE, plan="x" * ((1 << 20) + 1))}, "source"),
        ({"task": replace(TASK, reference="x" * ((1 << 18) + 1))}, "task.reference"),
        ({"task": replace(TASK, instructions="x" * 100_000)}, "task.instructions"),
        ({"request_id": "x" * 1000}, "request_id"),
        ({"stop_above_ns": (1.0, 1.0)}, "stop_above_ns"),
        ({"configuration": (Setting(name="x" * 1000, value="1"),)}, "configuration"),
        ({"configuration": (Setting(name="x", value="1"),) * 2000}, "configuration"),
    ],
)
def test_lengths_are_bounded(changes: dict[str, Any], field: str) -> None:
    assert _field(check_evaluation, replace(REQUEST, **changes)) == field


def test_sweeps_and_tasks_are_bounded() -> None:
    for count in (0, -1, 1 << 40):
        assert _field(check_sweep, replace(SWEEP, max_configurations=count)) == "max_configurations"
    many = tuple(Workload(name=str(i)) for i in range(1000))
    assert _field(check_task, replace(TASK, workloads=many)) == "task.workloads"
    for value in (0, -1, 1 << 50):
        sized = Workload(name="w", sizes=(Size(name="n", value=value),))
        assert _field(check_task, replace(TASK, workloads=(sized,))) == "task.workloads.sizes"


@pytest.mark.parametrize(
    "name",
    ["", "x" * 2000, "a  b", "a" + " " * 70 + "PASSED", " a", "a ", "a\tb", "a\nb", "a\u3000b",
     "a\u2800b", "a\x1b[2Jb", "a\u202eb"],
)  # fmt: skip
def test_names_that_pass_for_several_lines_are_refused(name: str) -> None:
    if name:  # a task without one is judged, but no table shows it
        assert _field(check_task, replace(TASK, name=name)) == "task.name"
    workloads = (Workload(name=name),)
    assert _field(check_task, replace(TASK, workloads=workloads)) == "task.workloads.name"


def test_a_verdict_names_the_callers_figure() -> None:
    """What fitness is compared with: the evaluator's own baseline, or what it did not measure."""

    def told(*yardsticks: Yardstick) -> WorkloadResult:
        request = replace(REQUEST, yardsticks=yardsticks)
        draft = draft_of(request, "sycl:0", {"default": 1e6})
        draft.set_workload(WorkloadResult(workload="default"))
        failure = CandidateFailure(outcome=EvaluationOutcome.TIMEOUT, findings=())
        return draft.failed(failure).workloads[0]

    for given in ((), (Yardstick(workload="default", time_ns=1e6),)):
        assert (told(*given).yardstick_ns, told(*given).yardstick_given) == (1e6, False)
    other = told(Yardstick(workload="default", time_ns=1e9))
    assert (other.yardstick_ns, other.yardstick_given) == (1e9, True)


async def test_an_evaluator_refuses_before_it_starts_anything() -> None:
    """Without a device every other call ends otherwise."""
    evaluator = LocalEvaluator(EvaluatorSettings(device_kinds=()))
    bad = replace(TASK, least_bits=math.nan)
    for call in (
        evaluator.admit(bad),
        evaluator.evaluate(replace(REQUEST, task=bad)),
        _all(evaluator, replace(SWEEP, task=bad)),
    ):
        with pytest.raises(InvalidArgumentError, match=r"task\.least_bits"):
            await call
    await evaluator.close()


async def _all(evaluator: LocalEvaluator, request: SweepRequest) -> None:
    async for _ in evaluator.sweep(request):
        raise AssertionError("nothing comes of it")


def test_a_request_id_is_of_one_request() -> None:
    """Two clients may choose the same: each gets the verdict on its own request."""

    class Judging(LocalEvaluator):
        def __init__(self) -> None:
            self._verdicts = Verdicts(retry_seconds=0.0)  # and no processes

        async def _evaluated(self, request: EvaluationRequest) -> object:
            return object()

    async def ask() -> list[object]:
        evaluator = Judging()
        one = replace(REQUEST, request_id="same")
        other = replace(one, sanitize=not one.sanitize)
        return [await evaluator.evaluate(request) for request in (one, other, one)]

    first, second, again = asyncio.run(ask())
    assert first is again
    assert second is not first
