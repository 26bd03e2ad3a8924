"""Whether a task can be judged at all: no trivial answer may pass.

Derives the tolerance, tries all trivial answers (`trivial_answers.py`) on every workload, tightens
the tolerance as far as rounding noise allows, and says what still speaks against the task.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import torch

from evaluator_svc.judge.admission.insensitivity import find_insensitive
from evaluator_svc.judge.admission.moved_values import moves_values
from evaluator_svc.judge.admission.screening import Screening, screen
from evaluator_svc.judge.admission.tolerance import floor_of, granted, least, measure
from evaluator_svc.judge.admission.trivial_answers import (
    ANOTHER_DRAW,
    DrawPair,
    TrivialTrial,
    try_answers,
)
from evaluator_svc.judge.draws.expected_output import expect
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload, keeping_sets
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.reference.formats import narrowest
from evaluator_svc.judge.timed_calls.call_inputs import in_a_call, redrawn_tensors
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import ToleranceDerivation, ValueRange
from kernel_foundry.domain.task import Task, Tolerance

_Draws = tuple[Callable[[], InputSet], Callable[[], InputSet]]

ADMISSION_SEEDS: Final = (101, 102, 103)
"""Known seeds: admission judges the task, not a candidate."""

_CLEAR_OF: Final = 0.5
"""A tightened tolerance is at most this share of a trivial answer's error."""

_AT_LEAST_CLEAR_OF: Final = 0.9
"""The same share if the rounding noise allows no smaller tolerance."""

_PARTIAL_SHARE: Final = 0.55
"""A trivial answer that gets this share of the elements right is warned of. Not one half: by chance
a ReLU leaves that many zero."""


@dataclass(slots=True, kw_only=True)
class AnswerCheck:
    """What was found of a task's answers, and the tolerance that follows."""

    tolerance: Tolerance
    derivation: ToleranceDerivation
    refusals: list[str] = field(default_factory=list)
    degeneracies: list[str] = field(default_factory=list)
    """Those of the refusals that do not prevent judging."""
    warnings: list[str] = field(default_factory=list)
    exact: list["_Pass"] = field(default_factory=list)
    """Answers that are right to the last bit on ordinary inputs, which no tolerance refuses."""

    @property
    def is_judgeable(self) -> bool:
        """Whether candidates can be judged at all, however little a pass says."""
        return all(refusal in self.degeneracies for refusal in self.refusals)

    def take(self, found: Screening) -> None:
        """Add what was found elsewhere."""
        self.refusals += found.refusals
        self.degeneracies += found.degeneracies
        self.warnings += found.warnings

    def refuse_as_degenerate(self, reason: str) -> None:
        """Add a refusal that a task can be judged in spite of."""
        self.refusals.append(reason)
        self.degeneracies.append(reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """A trivial answer that passes a workload."""

    where: str
    tried: TrivialTrial
    output_count: int

    @property
    def which(self) -> str:
        """Names the output where there are several."""
        return f" for output {self.tried.output}" if self.output_count > 1 else ""


def check_answers(
    task: Task, prepared: Sequence[PreparedWorkload], memory: JudgeMemory
) -> AnswerCheck:
    """Return the tolerance of `task` and what speaks against it.

    Raises:
        TaskInvalidError: the reference raises.
    """
    with keeping_sets(prepared):
        return _checked(task, prepared, memory)


def _checked(task: Task, prepared: Sequence[PreparedWorkload], memory: JudgeMemory) -> AnswerCheck:
    answers = _derive(task, prepared, memory)
    for item in prepared:
        answers.take(_screened(item, answers.tolerance, memory))
    if not answers.is_judgeable or not task.compare:
        return answers  # what passes without a comparison, the task's check says
    passes = list(_passes(prepared, answers, memory))
    _tighten(answers, [p.tried for p in passes])
    for passed in passes:
        if passed.tried.is_exact and passed.tried.name != ANOTHER_DRAW:
            answers.exact.append(passed)
        elif passed.tried.error <= answers.tolerance.of(passed.tried.output).rtol or (
            not _is_scaled(task)
        ):
            answers.refuse_as_degenerate(_refusal(passed, answers.tolerance))
    if not answers.refusals:
        for item in prepared:
            pair = _draw_pair(item, _draws(item), memory)
            answers.take(find_insensitive(pair, answers.tolerance))
    return answers


def settle_exact(
    answers: AnswerCheck,
    ranged: PreparedWorkload | None,
    value_ranges: Sequence[ValueRange],
    memory: JudgeMemory,
) -> None:
    """Refuse a task for answers that are exact, unless unusual inputs tell them from it.

    Args:
        answers: What was found so far.
        ranged: The workload that candidates are tried on with other distributions, if any.
        value_ranges: Those distributions.
        memory: Where the reference runs.
    """
    for item in answers.exact:
        is_exposed = ranged is not None and any(
            value_range.is_binding
            and item.tried.output not in value_range.left_out
            and not _passes_in(item, ranged, value_range, answers, memory)
            for value_range in value_ranges
        )
        if is_exposed:
            answers.warnings.append(
                f"{item.where}: {item.tried.name} is right{item.which} on what get_inputs() gives;"
                " only inputs of other magnitude or sign distinguish it from the operator"
            )
        else:
            answers.refuse_as_degenerate(_refusal(item, answers.tolerance))


def _passes_in(
    item: _Pass,
    ranged: PreparedWorkload,
    value_range: ValueRange,
    answers: AnswerCheck,
    memory: JudgeMemory,
) -> bool:
    """Return whether an answer is right on inputs of another distribution, too."""
    seeds = ADMISSION_SEEDS[:2]
    kind = value_range.distribution
    sets = [with_distribution(ranged, ranged.shared_set(seed), kind) for seed in seeds]
    tolerance = answers.tolerance.times(value_range.factor)
    pair = _draw_pair(ranged, (lambda: sets[0], lambda: sets[1]), memory)
    return any(
        tried.passes
        for tried in try_answers(pair, tolerance)
        if (tried.name, tried.output) == (item.tried.name, item.tried.output)
    )


def _is_scaled(task: Task) -> bool:
    return task.tolerance is None


def _derive(task: Task, prepared: Sequence[PreparedWorkload], memory: JudgeMemory) -> AnswerCheck:
    """Return the task's own tolerance, or the widest that one of its workloads needs.

    Without a comparison nothing is held to it; it tells what differs from the reference's outputs.
    """
    if not task.compare:
        bound = floor_of(narrowest(item.module.rounding for item in prepared))
        unused = ToleranceDerivation(
            source="check", noise=0.0, safety=1.0, floor=bound, ceiling=bound
        )
        return AnswerCheck(tolerance=Tolerance(rtol=bound, atol=bound), derivation=unused)
    if task.tolerance is not None:
        bound = task.tolerance.rtol
        given = ToleranceDerivation(
            source="sidecar", noise=0.0, safety=1.0, floor=bound, ceiling=bound
        )
        return AnswerCheck(tolerance=task.tolerance, derivation=given)
    measured = _measured(prepared, memory)
    derivation = max(measured, key=lambda d: (granted(d), d.noise))
    # What is safe for one workload may be under another one's noise.
    derivation = dataclasses.replace(
        derivation,
        noise=max(d.noise for d in measured),
        tf32_noise=max(d.tf32_noise for d in measured),
        split_noise=max(d.split_noise for d in measured),
    )
    bound = granted(derivation)
    shares = _output_shares(prepared, memory, bound)
    tolerance = Tolerance(rtol=bound, atol=bound, output_shares=shares)
    return AnswerCheck(tolerance=tolerance, derivation=derivation)


def _measured(
    prepared: Sequence[PreparedWorkload],
    memory: JudgeMemory,
    rounding: torch.dtype | None = None,
) -> list[ToleranceDerivation]:
    """Return derivations from every workload: of all outputs, or of those that round to a format.

    Timed calls are held to the tolerance on values that are spread wider.
    """
    seed = ADMISSION_SEEDS[0]
    measured = [
        measure([item.shared_set(seed)], item.workload.name, rounding=rounding) for item in prepared
    ]
    measured += [
        measure([in_a_call(item, seed, memory)], item.workload.name, rounding=rounding)
        for item in prepared
        if not item.workload.held_out and any(redrawn_tensors(item, memory))
    ]
    return measured


def _output_shares(
    prepared: Sequence[PreparedWorkload], memory: JudgeMemory, bound: float
) -> tuple[float, ...]:
    """Return what each output is held to as a share of the bound; empty: all of it.

    None of it where the operator moves values and rounds nothing; that of its own format where it
    keeps more bits than other outputs.
    """
    formats = [item.module.output_roundings for item in prepared]
    roundings = [narrowest(dtypes) for dtypes in zip(*formats, strict=True)]
    task = narrowest(item.module.rounding for item in prepared)
    of_format = {
        rounding: max(map(granted, _measured(prepared, memory, rounding)))
        for rounding in set(roundings) - {task}
    }
    shares = [min(of_format.get(rounding, bound) / bound, 1.0) for rounding in roundings]
    for output, is_moved in enumerate(moves_values(prepared, ADMISSION_SEEDS[0])):
        if is_moved:
            shares[output] = 0.0
    return tuple(shares) if min(shares, default=1.0) < 1.0 else ()


def _screened(item: PreparedWorkload, tolerance: Tolerance, memory: JudgeMemory) -> Screening:
    found = Screening()
    draws = _draws(item)
    if item.is_large and not _same_values(draws[0](), draws[0](), memory):
        found.refusals.append(
            f"{item.workload.name}: get_inputs() gives other values under the same seed, and the"
            " workload is too large to keep copies of them; draw from torch's generator"
        )
        return found
    return screen(
        draws,
        tolerance,
        is_scaled=_is_scaled(item.task),
        where=item.workload.name,
        memory=memory,
    )


def _same_values(first: InputSet, second: InputSet, memory: JudgeMemory) -> bool:
    return all(
        memory.same_bytes(a.data_ptr(), b.data_ptr(), a.nbytes)
        for a, b in zip(first.pristine, second.pristine, strict=True)
    )


def _draws(item: PreparedWorkload) -> _Draws:
    """Return what gives two input sets, which are drawn at each use where they are large."""
    first, second = (partial(item.shared_set, seed) for seed in ADMISSION_SEEDS[:2])
    return first, second


def _draw_pair(
    item: PreparedWorkload,
    draws: _Draws,
    memory: JudgeMemory,
    elsewhere: tuple[torch.Tensor, ...] = (),
) -> DrawPair:
    return DrawPair(
        prepared=item,
        draws=draws,
        expect=partial(expect, is_scaled=_is_scaled(item.task), memory=memory),
        elsewhere=elsewhere,
    )


def _passes(
    prepared: Sequence[PreparedWorkload], answers: AnswerCheck, memory: JudgeMemory
) -> Iterator[_Pass]:
    """Yield what passes, and warn of what nearly does."""
    small = [item for item in prepared if not item.is_large]
    for item in prepared:
        source = next((other for other in small if other is not item), None)
        # Another seed than the workload's own: equal generators begin with equal values.
        elsewhere = source.shared_set(ADMISSION_SEEDS[2]).expected() if source else ()
        pair = _draw_pair(item, _draws(item), memory, elsewhere)
        count = len(pair.expected)
        partial: list[TrivialTrial] = []
        for tried in try_answers(pair, answers.tolerance):
            if tried.passes:
                yield _Pass(where=item.workload.name, tried=tried, output_count=count)
            elif tried.share >= _PARTIAL_SHARE:
                partial.append(tried)
        if partial:
            best = max(partial, key=lambda tried: tried.share)
            answers.warnings.append(
                f"{item.workload.name}: {best.name} is right in {best.share:.0%} of the elements"
                f"{f' of output {best.output}' if count > 1 else ''}: the inputs leave them"
                " unchecked"
            )


def _tighten(answers: AnswerCheck, passed: Sequence[TrivialTrial]) -> None:
    """Tighten a derived tolerance until the answers fail, as far as the noise allows."""
    if answers.derivation.source != "measured":
        return
    limit = least(answers.derivation)
    for tried in sorted(passed, key=lambda t: t.error, reverse=True):
        if tried.error * _AT_LEAST_CLEAR_OF < limit or tried.error == 0.0:
            continue
        bound = float(f"{max(_CLEAR_OF * tried.error, limit):.1e}")
        if bound < min(answers.tolerance.rtol, tried.error):
            # Outputs that are held to less stay at that: it is what their noise needs.
            wider = answers.tolerance.rtol / bound
            shares = tuple(min(wider * share, 1.0) for share in answers.tolerance.output_shares)
            answers.tolerance = Tolerance(rtol=bound, atol=bound, output_shares=shares)
            answers.derivation = dataclasses.replace(answers.derivation, tightened_by=tried.name)


def _refusal(passed: _Pass, tolerance: Tolerance) -> str:
    name, which = passed.tried.name, passed.which
    if name == ANOTHER_DRAW:
        return (
            f"{passed.where}: the output{which} is constant: other inputs and parameters change it"
            " by less than the tolerance; choose inputs on which it varies"
        )
    if passed.tried.is_exact:
        return (
            f"{passed.where}: {name} is right{which} on what get_inputs() gives, and would pass as"
            " a candidate: choose inputs on which the operator does something"
        )
    return (
        f"{passed.where}: {name} would pass as a candidate{which}: the tolerance (rtol"
        f" {tolerance.rtol:g}, atol {tolerance.atol:g}) is too loose for the output, and rounding"
        " noise allows no tighter one; choose larger outputs or other inputs"
    )
