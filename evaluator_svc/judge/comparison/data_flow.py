"""Whether outputs follow their inputs when a few elements change in place.

A candidate that hands out what it stored, keyed on addresses, on the number of calls or on a few
sampled elements, gives what the inputs gave before.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch

from evaluator_svc.judge.comparison.call_outputs import CallOutputs
from evaluator_svc.judge.comparison.checks import figures
from evaluator_svc.judge.comparison.task_check import answer_on, with_answers
from evaluator_svc.judge.comparison.verify import (
    OutputCheck,
    StrayWrites,
    check_output,
    judge_outputs,
)
from evaluator_svc.judge.draws.expected_output import ExpectedOutput
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.messages.comparison import RunComparison
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import Correctness
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.errors import TaskInvalidError

_PROBED_SEEDS: Final = 2
_SLOTS: Final = (0,)
"""Output slots that the run on a timed set ends up in."""
_STALE_SHARE: Final = 0.5
"""Share of the wrong elements that should have changed and still hold the earlier right value."""
_BLOCK_ELEMENTS: Final = 1 << 22
"""Elements looked at in a block; most wrong ones that are looked at."""


def change_inputs(
    draw: SharedDraw, *, with_parameters: bool, is_second: bool = False
) -> tuple[int, ...]:
    """Change a few elements of some seeds' inputs; return which seeds, whose outputs are poisoned.

    Runs of elements of one seed, which outputs that sum up all of them show; single ones of
    another, which nobody who looks at samples sees. A lean draw has no other seed: there single
    ones of the same take the place of the runs when it is asked for the second time.
    """
    changed = tuple(
        seed
        for seed in draw.loaded[:_PROBED_SEEDS]
        if draw.change(seed, is_sparse=seed > 0 or is_second, with_parameters=with_parameters)
    )
    draw.poison(seeds=changed, slots=_SLOTS)
    return changed


def verify_changed(draw: SharedDraw, seeds: Sequence[int]) -> RunComparison:
    """Return the verdict on a run on changed inputs, whose outputs are in the first slots."""
    try:
        checks, modified = _compared(draw, seeds)
    except TaskInvalidError as error:
        return _skipped(draw, f"the reference does not run on changed inputs: {error.message}")
    if not checks:
        return _skipped(draw, "the reference is not finite on changed inputs")
    stray = StrayWrites(modified=modified, touched=draw.stray_writes())
    verdict = judge_outputs(draw, checks, stray)
    if not draw.prepared.task.compare:
        return _by_check(draw, checks, verdict)
    # What a few changed elements leave as it was may be less than the share that may differ.
    differing = [c for c in checks if c.has_mismatch or (draw.tolerance.matched < 1 and c.differs)]
    stale = max((_stale_share(draw, check) for check in differing), default=0.0)
    is_stale = stale >= _STALE_SHARE
    wrong = differing if is_stale else [check for check in checks if check.has_mismatch]
    check = Check(
        kind=CheckKind.DATA_FLOW,
        result=CheckResult.FAILED if wrong or verdict.is_wrong else CheckResult.PASSED,
        workload=draw.workload,
        figures=figures(
            seeds=len(seeds),
            elements=verdict.correctness.element_count,
            mismatched_elements=verdict.correctness.mismatch_count,
            stale_share=stale,
        ),
    )
    findings = (_finding(draw, stale), *verdict.findings) if is_stale else verdict.findings
    return replace(
        verdict,
        is_wrong=bool(wrong) or verdict.is_wrong,
        is_stale=is_stale,
        findings=findings,
        checks=(check,),
    )


def _by_check(
    draw: SharedDraw, checks: Sequence[OutputCheck], verdict: RunComparison
) -> RunComparison:
    """Return the verdict of the task's check on the runs on changed inputs."""
    task = draw.prepared.task
    seeds = dict.fromkeys(check.seed for check in checks)
    answer = answer_on([CallOutputs(draw=draw, seed=seed) for seed in seeds])
    verdict = with_answers(task, verdict, [answer])
    check = Check(
        kind=CheckKind.DATA_FLOW,
        result=CheckResult.FAILED if verdict.is_wrong else answer.result,
        workload=draw.workload,
        figures=figures(seeds=len(seeds), elements=verdict.correctness.element_count),
        note=f"by {task.check}() of the task{answer.note and f': {answer.note}'}",
    )
    return replace(verdict, checks=(check,))


def _compared(draw: SharedDraw, seeds: Sequence[int]) -> tuple[list[OutputCheck], tuple[str, ...]]:
    checks: list[OutputCheck] = []
    modified: set[str] = set()
    for seed in seeds:
        touched = draw.modified_inputs(seed)
        if not all(expected.is_finite() for expected in draw.expected(seed)):
            continue
        modified.update(touched)
        checks += [
            check_output(draw, seed=seed, output=output, slots=_SLOTS)
            for output in range(len(draw.output_slots))
        ]
    return checks, tuple(sorted(modified))


def _stale_share(draw: SharedDraw, check: OutputCheck) -> float:
    """Return the share of wrong elements that hold what the inputs gave before the change."""
    written = draw.output_tensor(check.seed, check.output, check.slots[check.worst])
    now = draw.expected(check.seed)[check.output]
    tolerance = draw.tolerance.of(check.output)
    wrong = _wrong_places(written, now, tolerance)
    actual = written.reshape(-1)[wrong]
    expected, bound = now.tensor.reshape(-1)[wrong], now.bound_at(wrong, tolerance)
    del now  # of a large workload there is no room for both
    before = draw.expected_unchanged(check.seed)[check.output]
    earlier = before.tensor.reshape(-1)[wrong]
    # An element that should not have changed tells nothing, wrong as it may be.
    telling = ~_is_close(earlier, expected, bound)
    count = int(telling.sum())
    if not count:
        return 0.0
    stale = telling & _is_close(actual, earlier, before.bound_at(wrong, tolerance))
    return float(stale.sum()) / count


def _wrong_places(
    written: torch.Tensor, expected: ExpectedOutput, tolerance: Tolerance
) -> torch.Tensor:
    """Return the flat indices of wrong elements: the first of them, where there are very many."""
    flat, found, count = written.reshape(-1), [], 0
    for start in range(0, flat.numel(), _BLOCK_ELEMENTS):
        part = flat[start : start + _BLOCK_ELEMENTS]
        places = torch.arange(start, start + part.numel(), device=flat.device)
        bound = expected.bound_at(places, tolerance)
        close = _is_close(part, expected.tensor.reshape(-1)[start : start + part.numel()], bound)
        found.append(places[~close])
        count += len(found[-1])
        if count >= _BLOCK_ELEMENTS:
            break
    return torch.cat(found)[:_BLOCK_ELEMENTS]


def _is_close(actual: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
    if not expected.is_floating_point():
        return torch.eq(actual, expected)
    return torch.le((actual.float() - expected.float()).abs_(), bound)


def _skipped(draw: SharedDraw, note: str) -> RunComparison:
    check = Check(
        kind=CheckKind.DATA_FLOW, result=CheckResult.SKIPPED, workload=draw.workload, note=note
    )
    nothing = Correctness(
        max_abs_error=0.0,
        max_rel_error=0.0,
        mismatch_count=0,
        element_count=0,
        first_mismatch=None,
        seed_count=0,
        run_count=0,
        bitwise_reproducible=True,
    )
    return RunComparison(correctness=nothing, checks=(check,))


def _finding(draw: SharedDraw, share: float) -> Finding:
    return Finding(
        kind=FindingKind.DATA_FLOW,
        severity=Severity.ERROR,
        message=(
            f"outputs of workload {draw.workload} did not follow when a few elements of the inputs"
            " changed: they are what the inputs gave before"
        ),
        evidence=figures(stale_share=share),
        hint="compute every output from the inputs of this very call; keep nothing between calls",
    )
