"""What a transition teaches, and when it teaches nothing."""

import dataclasses
import math

import pytest

from generator_svc.experience.lesson_writer import write_lesson
from generator_svc.experience.transition import log_speedup
from kernel_foundry.domain.evaluation import EvaluationOutcome, Timing
from kernel_foundry.domain.finding import FindingKind, Severity
from kernel_foundry.domain.lesson import MAX_EXCERPT_CHARS, LessonOrigin, lesson_fault
from kernel_foundry.domain.measures import Measures
from tests.domain_values import timing_of
from tests.experience.conftest import (
    HIDDEN,
    PLAN,
    SCALAR,
    VECTOR,
    VECTOR_PLAN,
    evaluation,
    finding,
    source,
    transition,
)

LOW = Measures(memory=0, algorithm=0, synchronization=0)
HIGH = Measures(memory=1, algorithm=0, synchronization=0)
BOUND = finding(FindingKind.MEMORY_BOUND, "memory-bound: 40% of what the memory can do")
CHILD = source(VECTOR, VECTOR_PLAN)


def test_a_clear_gain_teaches_its_move() -> None:
    lesson = write_lesson(
        transition(
            evaluation(source(), median_ns=2000.0, findings=(BOUND,)),
            evaluation(CHILD, median_ns=1000.0, measures=HIGH),
            target=HIGH,
            hint="Let each thread move sixteen bytes.",
        )
    )
    assert lesson is not None
    assert "scale by two" in lesson.symptom
    assert BOUND.message in lesson.symptom
    assert "vector access" in lesson.move
    assert "sixteen bytes" in lesson.move
    assert "2.00 times as fast" in lesson.move
    assert "memory from 0 to 1" in lesson.move
    assert "float4 v = x[i];" in lesson.excerpt
    assert "threadIdx" not in lesson.excerpt, "an unchanged line"
    assert "# plan" in lesson.excerpt
    assert lesson.findings == (FindingKind.MEMORY_BOUND,)
    assert (lesson.before, lesson.after) == (LOW, HIGH)
    assert lesson.experts == ("memory",)
    assert lesson.device == "sm_90"
    assert lesson.source == f"run first, {CHILD.digest[:12]}"
    assert lesson.origin is LessonOrigin.LEARNT
    assert (lesson.effect, lesson.use_count) == (pytest.approx(math.log(2.0)), 1)
    assert lesson_fault(lesson) == ""


@pytest.mark.parametrize(
    ("median_ns", "noise"), [(1990.0, 0.001), (1500.0, 0.2), (2000.0, 0.01), (2500.0, 0.01)]
)
def test_what_may_be_noise_teaches_nothing(median_ns: float, noise: float) -> None:
    """Neither a gain that is too small, nor one whose intervals overlap, nor a small loss."""
    parent = evaluation(source(), median_ns=2000.0, noise=noise, findings=(BOUND,))
    child = evaluation(CHILD, median_ns=median_ns, noise=noise)
    assert write_lesson(transition(parent, child, shown=(1,), target=HIGH)) is None


def test_a_gain_is_not_put_down_to_a_direction_that_was_not_taken() -> None:
    """The child is faster in a way of its own."""
    lesson = write_lesson(
        transition(
            evaluation(source(), median_ns=2000.0, findings=(BOUND,)),
            evaluation(CHILD, median_ns=1000.0),
            target=HIGH,
            hint="Let each thread move sixteen bytes.",
        )
    )
    assert lesson is not None
    assert "sixteen bytes" not in lesson.move


def test_a_comment_is_no_move() -> None:
    """Nor are blanks; a time that differs all the same is the machine's."""
    same = source(f"// try 7\n{SCALAR}", f"# try 7\n\n{PLAN}")
    ends = evaluation(source(), median_ns=2000.0), evaluation(same, median_ns=1000.0)
    assert write_lesson(transition(*ends, sources=(source(), same))) is None
    other = source(f"// unrolled by hand\n{VECTOR}", VECTOR_PLAN)
    lesson = write_lesson(transition(*ends, sources=(source(), other)))
    assert lesson is not None
    assert "unrolled" not in lesson.move, "a word of a comment is no construct"


def test_identifiers_are_no_lesson() -> None:
    """What a variable is called helps nobody; constructs and the new lines do."""
    named = source("__global__ void f(float* staging) { staging[7] = 1.0f; }", VECTOR_PLAN)
    ends = evaluation(source(), median_ns=2000.0), evaluation(named, median_ns=1000.0)
    lesson = write_lesson(transition(*ends, sources=(source(), named)))
    assert lesson is not None
    assert "staging" in lesson.excerpt
    assert "staging" not in lesson.move
    assert "1.00" not in lesson.move


def test_what_was_found_of_the_measurement_is_no_symptom() -> None:
    """A noisy timing is not what a kernel suffers from."""
    noisy = finding(FindingKind.NOISY_TIMING, "known to ±16% only", Severity.WARNING)
    parent = evaluation(source(), median_ns=2000.0, findings=(noisy, BOUND))
    lesson = write_lesson(transition(parent, evaluation(CHILD, median_ns=1000.0)))
    assert lesson is not None
    assert lesson.findings == (FindingKind.MEMORY_BOUND,)
    assert "16%" not in lesson.symptom


def test_a_repair_teaches_what_mended_it() -> None:
    """For everybody, whatever the speed."""
    error = finding(FindingKind.COMPILE_ERROR, 'identifier "float5" is undefined', Severity.ERROR)
    parent = evaluation(source(), outcome=EvaluationOutcome.COMPILE_ERROR, findings=(error, BOUND))
    lesson = write_lesson(transition(parent, evaluation(CHILD)))
    assert lesson is not None
    assert lesson.symptom.startswith("A kernel for scale by two ends as compile error: ")
    assert error.message in lesson.symptom
    assert lesson.findings == (FindingKind.COMPILE_ERROR,)
    assert lesson.experts == ()
    assert (lesson.effect, lesson.use_count, lesson.failure_count) == (0.0, 1, 0)


def test_a_failure_teaches_nothing() -> None:
    child = evaluation(CHILD, outcome=EvaluationOutcome.WRONG_RESULT)
    assert write_lesson(transition(evaluation(source()), child, shown=(1,), target=HIGH)) is None


@pytest.mark.parametrize(("target", "shown"), [(HIGH, ()), (None, (1,))])
def test_advice_that_was_followed_and_cost_much_is_written_down(
    target: Measures | None, shown: tuple[int, ...]
) -> None:
    """Without code to copy, with the loss that was measured."""
    parent = evaluation(source(), median_ns=1000.0, findings=(BOUND,))
    child = evaluation(CHILD, median_ns=3000.0, measures=HIGH)
    lesson = write_lesson(transition(parent, child, target=target, shown=shown))
    assert lesson is not None
    assert "did not pay here" in lesson.move
    assert "3.00 times as slow" in lesson.move
    assert lesson.excerpt == ""
    assert lesson.effect == pytest.approx(-math.log(3.0))


def test_a_loss_that_followed_no_advice_teaches_nothing() -> None:
    """It went another way than it was told to, or was told nothing."""
    parent = evaluation(source(), median_ns=1000.0)
    child = evaluation(CHILD, median_ns=3000.0, measures=HIGH)
    assert write_lesson(transition(parent, child)) is None
    elsewhere = Measures(memory=0, algorithm=2, synchronization=0)
    assert write_lesson(transition(parent, child, target=elsewhere, shown=(1,))) is None


def test_times_of_other_devices_are_not_compared() -> None:
    """Nor those of other tasks or workloads."""
    parent = evaluation(source(), median_ns=2000.0)
    child = evaluation(CHILD, median_ns=1000.0)
    for other in (
        dataclasses.replace(child, device="sycl:0"),
        dataclasses.replace(child, task="another"),
        _renamed(child),
    ):
        assert write_lesson(transition(parent, other)) is None


def test_gains_count_by_the_weights_of_the_workloads() -> None:
    """In whichever order the two verdicts have them."""

    def verdict(of, *times_ns: float):
        (one,) = of.workloads
        workloads = tuple(
            dataclasses.replace(
                one, workload=f"w{weight:g}", timing=timing_of(ns, half_width=0.01), weight=weight
            )
            for ns, weight in zip(times_ns, (3.0, 1.0), strict=True)
        )
        return dataclasses.replace(of, workloads=workloads)

    parent, child = (
        verdict(evaluation(source()), 2000.0, 1000.0),
        verdict(evaluation(CHILD), 1000.0, 1000.0),
    )
    for before in (parent, dataclasses.replace(parent, workloads=parent.workloads[::-1])):
        change = log_speedup(before, child)
        assert change is not None
        assert change.mean == pytest.approx(0.75 * math.log(2.0))
        assert change.lower < change.mean < change.upper


def test_no_lesson_tells_what_is_held_out() -> None:
    """Neither the name of a hidden workload nor a size that only it has."""
    error = finding(
        FindingKind.MISMATCH, f"out is wrong on {HIDDEN} at 1000 of 3003", Severity.ERROR
    )
    parent = evaluation(source(), outcome=EvaluationOutcome.WRONG_RESULT, findings=(error,))
    lesson = write_lesson(transition(parent, evaluation(CHILD)))
    assert lesson is not None
    text = f"{lesson.symptom} {lesson.move}"
    assert all(secret not in text for secret in (HIDDEN, "1001", "3003"))


def test_no_lesson_tells_a_hidden_size_of_a_plan_that_does_not_fit() -> None:
    """Such a finding names no workload."""
    error = finding(FindingKind.PLAN, "the block (1001, 1, 1) has 1001 threads", Severity.ERROR)
    parent = evaluation(source(), outcome=EvaluationOutcome.PLAN_ERROR, findings=(error,))
    lesson = write_lesson(transition(parent, evaluation(CHILD)))
    assert lesson is not None
    assert "the block (…, 1, 1) has … threads" in lesson.symptom


def test_an_excerpt_is_bounded_and_has_whole_lines() -> None:
    """However long the child."""
    lines = [f"  out[{i}] = {i}.0f * x[{i}];" for i in range(2000)]
    long = source("\n".join(lines))
    lesson = write_lesson(
        transition(
            evaluation(source(SCALAR), median_ns=2000.0),
            evaluation(long, median_ns=1000.0),
            sources=(source(SCALAR), long),
        )
    )
    assert lesson is not None
    assert MAX_EXCERPT_CHARS - 40 < len(lesson.excerpt) <= MAX_EXCERPT_CHARS
    assert set(lesson.excerpt.splitlines()) <= set(lines)


def _renamed(child):
    (workload,) = child.workloads
    assert isinstance(workload.timing, Timing)
    return dataclasses.replace(child, workloads=(dataclasses.replace(workload, workload="other"),))
