"""Probe of a device, its runners and its judge: they do what every verdict takes for granted.

Candidates with a known outcome are judged as all candidates are, and the judge's comparison has to
find planted differences.
"""

import time
from collections.abc import Callable
from typing import Final

from evaluator_svc.messages.judge import ComparisonProbeReply
from evaluator_svc.probing import device_task as known
from evaluator_svc.processes.time_limit import MOST_SHARE
from kernel_foundry.domain.evaluation import Correctness, Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import Figure, FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.probe import Probe
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest

Evaluate = Callable[[EvaluationRequest], Evaluation]

_LIMITS: Final = EvaluationLimits(build_seconds=20.0, run_seconds=2.0, timing_seconds=0.1)
_END_SECONDS: Final = 10.0
"""To build, to notice and to end an endless kernel, beyond its own deadline."""


class DeviceProbes:
    """The probes of one device."""

    def __init__(self, device: str, language: Language, evaluate: Evaluate) -> None:
        self._device = device
        self._language = language
        self._evaluate = evaluate

    def probes(self) -> tuple[Probe, ...]:
        """Try everything; raises as `evaluate` does."""
        return (
            self._right(),
            self._unwritten_end(),
            self._wrong_in_places(),
            self._endless(),
            self._stray(),
        )

    def _right(self) -> Probe:
        evaluation = self._judged(known.RIGHT)
        found = _correctness(evaluation)
        is_right = evaluation.passed and found is not None and found.mismatch_count == 0
        return Probe(
            name="device.known_values",
            passed=is_right,
            detail="a kernel that computes a known function came out as "
            f"{evaluation.outcome.name}{_reason(evaluation)}",
            figures=_figures(found),
        )

    def _unwritten_end(self) -> Probe:
        """Outputs are poisoned, and the poison of one single element is seen."""
        evaluation = self._judged(known.UNWRITTEN_END)
        found = _correctness(evaluation)
        is_seen = (
            evaluation.outcome is EvaluationOutcome.WRONG_RESULT
            and found is not None
            and found.mismatch_count == found.seed_count
            and found.first_mismatch == known.ELEMENTS - 1
        )
        return Probe(
            name="device.poison",
            passed=is_seen,
            detail="a kernel that leaves the last element unwritten came out as "
            f"{evaluation.outcome.name}{_reason(evaluation)}",
            figures=_figures(found),
        )

    def _wrong_in_places(self) -> Probe:
        """What a runner writes is what the judge reads, element by element."""
        evaluation = self._judged(known.WRONG_IN_PLACES)
        found = _correctness(evaluation)
        is_seen = (
            evaluation.outcome is EvaluationOutcome.WRONG_RESULT
            and found is not None
            and found.mismatch_count == len(known.PLANTED) * found.seed_count
            and found.element_count == known.ELEMENTS * found.seed_count
            and found.first_mismatch == known.PLANTED[0]
        )
        return Probe(
            name="device.shared_buffers",
            passed=is_seen,
            detail=f"of {len(known.PLANTED)} wrong elements in each of"
            f" {found.seed_count if found else 0} outputs,"
            f" {found.mismatch_count if found else 0} were counted in all",
            figures=_figures(found),
        )

    def _endless(self) -> Probe:
        started_s = time.perf_counter()
        evaluation = self._judged(known.ENDLESS)
        seconds = time.perf_counter() - started_s
        next_one = self._judged(known.RIGHT)
        limit_seconds = MOST_SHARE * _LIMITS.run_seconds + _END_SECONDS
        is_ended = (
            evaluation.outcome is EvaluationOutcome.TIMEOUT
            and seconds <= limit_seconds
            and next_one.passed
        )
        return Probe(
            name="device.endless_kernel",
            passed=is_ended,
            detail=f"a kernel that never ends came out as {evaluation.outcome.name} after"
            f" {seconds:.1f} s, the next one as {next_one.outcome.name}",
            figures=(
                Figure(name="seconds", value=seconds),
                Figure(name="limit_seconds", value=limit_seconds),
            ),
        )

    def _stray(self) -> Probe:
        evaluation = self._judged(known.STRAY)
        next_one = self._judged(known.RIGHT)
        kinds = {finding.kind for finding in evaluation.findings}
        is_contained = (
            evaluation.outcome is EvaluationOutcome.CRASHED
            and FindingKind.ILLEGAL_ACCESS in kinds
            and next_one.passed
        )
        return Probe(
            name="device.illegal_access",
            passed=is_contained,
            detail="a kernel that writes far outside came out as "
            f"{evaluation.outcome.name}, the next one as {next_one.outcome.name}",
        )

    def _judged(self, body: str) -> Evaluation:
        return self._evaluate(
            EvaluationRequest(
                task=known.TASK,
                device=self._device,
                source=known.candidate(self._language, body),
                limits=_LIMITS,
            )
        )


def comparison_probe(found: ComparisonProbeReply) -> Probe:
    """Return the probe of the judge's comparison, made of the judge's answer."""
    missed = [c for c in found.counts if not c.is_right]
    wrong = ", ".join(
        f"{c.dtype}: {c.counted} of {c.planted} {c.what}, the first at {c.first_counted} and"
        f" planted at {c.first_planted}"
        for c in missed
    )
    planted = sum(c.planted for c in found.counts)
    return Probe(
        name="device.comparison",
        passed=bool(found.counts) and not missed,
        detail=f"the comparison is wrong on {wrong}"
        if missed
        else f"{planted} planted differences in {len(found.counts)} comparisons, all counted",
        figures=(
            Figure(name="planted", value=float(planted)),
            Figure(name="counted", value=float(sum(c.counted for c in found.counts))),
        ),
    )


def _correctness(evaluation: Evaluation) -> Correctness | None:
    return evaluation.workloads[0].correctness if evaluation.workloads else None


def _reason(evaluation: Evaluation) -> str:
    errors = [f.message for f in evaluation.findings if f.severity.value == "error"]
    return f": {errors[0]}" if errors else ""


def _figures(found: Correctness | None) -> tuple[Figure, ...]:
    if found is None:
        return ()
    return (
        Figure(name="mismatch_count", value=float(found.mismatch_count)),
        Figure(name="element_count", value=float(found.element_count)),
    )
