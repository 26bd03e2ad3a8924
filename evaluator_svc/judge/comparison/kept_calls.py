"""The verdict on timed calls whose outputs were kept, as on a candidate's first runs.

Which calls those are was drawn before they were made. They are compared with the reference, and
held to the precision audit and to the check of elements: work that is left out, or done in fewer
bits, in timed calls alone shows here whatever tells the candidate that it is timed. The reference
in float64 runs for cause: where a call is further from the reference in its own formats than what
was audited before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from evaluator_svc.judge.comparison.call_outputs import CallOutputs
from evaluator_svc.judge.comparison.checks import comparison_check
from evaluator_svc.judge.comparison.precision import (
    Closeness,
    agreement,
    audit_call,
    clear_bits,
)
from evaluator_svc.judge.comparison.task_check import CheckAnswer, answer_on, told, with_answers
from evaluator_svc.judge.comparison.verify import (
    OutputCheck,
    StrayWrites,
    check_output,
    judge_outputs,
)
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.timed_calls.call_inputs import CallValues
from evaluator_svc.messages.call_draws import call_draws
from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.judge import KeptClaim, PrecisionReply
from evaluator_svc.messages.measurement import KeptOutput
from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.evaluation import effective_bits
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry_native import _core as native

_LIKE_BEFORE: Final = 2.0
"""Times the strain of what was audited: a bit less tells of no other format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCalls:
    """The result of comparing kept calls."""

    verdict: RunComparison
    agreements: tuple[tuple[CallOutputs, Closeness], ...] = ()
    """Closeness of the calls that are right; only of timed ones, and if outputs are compared."""


def compare_kept(
    draw: SharedDraw,
    kept: Sequence[KeptOutput],
    claimed: KeptClaim | None = None,
    orders: Sequence[tuple[int, ...]] = (),
) -> KeptCalls:
    """Return the verdict on outputs that were copied back, and on what is around.

    Outputs with another order of axes in memory are put in that of their shapes first. A runner
    that gives other calls than those claimed is wrong. None: they are no timed calls.
    """
    if claimed is not None and not _is_as_drawn(draw, kept, claimed):
        return KeptCalls(verdict=_other_calls(draw))
    task, answers = draw.prepared.task, list[CheckAnswer]()
    checks: list[OutputCheck] = []
    modified: set[str] = set()
    agreements: list[tuple[CallOutputs, Closeness]] = []
    for item, values in zip(kept, _values(claimed, len(kept)), strict=True):
        modified.update(draw.modified_inputs(item.seed))
        for output, order in enumerate(orders):
            _put_in_order(draw, item, output, order)
        own = [
            check_output(draw, seed=item.seed, output=output, slots=(item.slot,), values=values)
            for output in range(len(draw.output_slots))
        ]
        checks += own
        # Now: what is expected of the call is held until that of another is asked for.
        call = CallOutputs(draw=draw, seed=item.seed, slot=item.slot, values=values)
        if not task.compare:
            answers.append(answer_on([call]))
        elif claimed is not None and not any(check.is_wrong for check in own):
            agreements.append((call, agreement(call)))
    stray = StrayWrites(modified=tuple(sorted(modified)), touched=draw.stray_writes())
    verdict = with_answers(task, judge_outputs(draw, checks, stray), answers)
    if draw.is_lean:
        draw.drop_copies()
    check = comparison_check(
        draw,
        verdict.correctness,
        is_right=not verdict.is_wrong,
        kind=CheckKind.TIMED_OUTPUTS,
    )
    if answers:
        is_silent = not verdict.is_wrong and not any(a.call_count for a in answers)
        check = replace(
            check,
            result=CheckResult.SKIPPED if is_silent else check.result,
            note=f"by {task.check}() of the task: {told(answers)}",
        )
    return KeptCalls(verdict=replace(verdict, checks=(check,)), agreements=tuple(agreements))


def audit_kept(draw: SharedDraw, calls: KeptCalls) -> PrecisionReply:
    """Return how exact kept calls are: of the worst of them, exactly where there is cause.

    Raises:
        TaskInvalidError: the reference raises.
    """
    worst = max(calls.agreements, key=lambda found: found[1].strain)
    far = max(calls.agreements, key=lambda found: found[1].far_share)
    is_asked = draw.prepared.task.least_bits > 0
    chosen = [worst[0]] if is_asked or not _is_clear(draw, worst[1]) else []
    if far[1].is_far and far[0] not in chosen:
        chosen.append(far[0])
    if not chosen:
        bits = effective_bits(worst[1].disagreement)
        note = f"timed calls: {bits:.1f} bits agree with the reference in its own formats"
        return PrecisionReply(note=note, agreeing_bits=bits)
    audited = [audit_call(call, with_elements=True) for call in chosen]
    found = max((a.far for a in audited if a.far), key=lambda f: f.share, default=None)
    return replace(audited[0], far=found)


def _is_clear(draw: SharedDraw, found: Closeness) -> bool:
    known = draw.audited_strain
    is_like_before = known is not None and found.strain <= _LIKE_BEFORE * known
    return is_like_before or effective_bits(found.disagreement) >= clear_bits(draw)


def _put_in_order(draw: SharedDraw, item: KeptOutput, output: int, order: tuple[int, ...]) -> None:
    """Put an output's elements in the order of its shape."""
    if order == tuple(range(len(order))):
        return
    slot = draw.output_slots[output]
    found = draw.output_tensor(item.seed, output, item.slot)
    in_memory = found.view([slot.shape[axis] for axis in order])
    ordered = in_memory.permute([order.index(axis) for axis in range(len(order))]).contiguous()
    draw.memory.copy(draw.address(item.seed, slot, item.slot), ordered.data_ptr(), slot.size_bytes)
    draw.memory.synchronize()  # `ordered` is let go


def _kept_calls(claimed: KeptClaim) -> list[tuple[int, int]]:
    return native.kept_calls(
        draws=call_draws(claimed.call_draws_seed),
        set_count=claimed.set_count,
        keep_count=claimed.keep_count,
        has_guests=claimed.has_guests,
        warmup_count=claimed.warmup_count,
        call_count=claimed.call_count,
    )


def _values(claimed: KeptClaim | None, count: int) -> list[CallValues | None]:
    """Return the values that the inputs of each kept call had."""
    if claimed is None or not claimed.redraw_key:
        return [None] * count
    return [
        CallValues(
            key=claimed.redraw_key,
            index=claimed.warmup_count + call + 1,
            with_parameters=claimed.redraws_parameters,
        )
        for call, _set in _kept_calls(claimed)
    ]


def _is_as_drawn(draw: SharedDraw, kept: Sequence[KeptOutput], claimed: KeptClaim) -> bool:
    seeds = [index % len(draw.buffers) for _call, index in _kept_calls(claimed)]
    return [(item.slot, item.seed) for item in kept] == list(enumerate(seeds))


def _other_calls(draw: SharedDraw) -> RunComparison:
    finding = Finding(
        kind=FindingKind.IMPOSSIBLE_TIME,
        severity=Severity.ERROR,
        message="the runner kept outputs of other calls than those that were drawn",
    )
    verdict = judge_outputs(draw, (), StrayWrites())
    check = comparison_check(
        draw, verdict.correctness, is_right=False, kind=CheckKind.TIMED_OUTPUTS
    )
    return replace(verdict, is_wrong=True, findings=(finding,), checks=(check,))
