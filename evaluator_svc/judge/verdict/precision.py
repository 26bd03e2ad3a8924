"""How exactly a candidate computed: the distribution of its errors against float64.

The tolerance sees the largest error, this sees all of them: a shortcut through 16 bits whose
errors average out of the maximum still has a root mean square far above the reference's own.
Only measures; what it means for a candidate is decided where its object code is known.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Self

import torch

from evaluator_svc.judge.draws.call_inputs import CallValues
from evaluator_svc.judge.draws.input_set import InputSet
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.verdict.batch_slice import batch_slice, is_independent
from evaluator_svc.judge.verdict.compare import group_shape
from evaluator_svc.judge.verdict.far_elements import (
    PERTURBATION_SEEDS,
    TOLD_SHARE,
    far_elements,
    far_share,
    is_measurable,
    perturbed,
)
from evaluator_svc.judge.verdict.relative_errors import relative_errors
from evaluator_svc.messages.judge import FarElements, PrecisionAudited
from kernel_foundry.domain.evaluation import PrecisionAudit, effective_bits
from kernel_foundry.errors import TaskInvalidError

CLEAR_BITS: Final = 17.0
"""Bits of agreement with the float32 reference from which an expensive audit is left out: the
figures that anything is decided by, 13 and 16 bits, cannot be reached from there."""

_BUDGET_SECONDS: Final = {"cpu": 0.4, "cuda": 0.07}
"""A fifth of a verdict; a reference that takes longer in float64 is run only for cause."""

_TRIALS: Final = 2
"""Runs in float64 before their time is believed: the first one loads the device's kernels."""

_PICKED_ELEMENTS: Final = {"cpu": 1 << 20, "cuda": 1 << 24}
"""About as many elements are looked at, in whole rows."""

_SAMPLE_ELEMENTS: Final = 1 << 18
"""Most errors that median and 99th percentile are taken of, evenly spaced."""

_TOO_LARGE: Final = "the workload is too large for a copy in float64"

_Rows = dict[int, torch.Tensor]
"""Some rows of outputs, by their place."""

_RATIO: Final = 8.0
"""An output whose errors exceed the reference's by this much is worse than one that does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutputs:
    """What one call wrote: into which slot, and on which inputs."""

    draw: SharedDraw
    seed: int
    """Index of a loaded seed."""
    slot: int = 0
    values: CallValues | None = None
    """Of the timed call; None: inputs were as drawn."""

    def expected(self) -> list[torch.Tensor]:
        """Return the reference's outputs in its own formats."""
        return [e.tensor for e in self.draw.expected_of_call(self.seed, self.values)]

    def actual(self, output: int) -> torch.Tensor:
        """Return an output as the call wrote it."""
        return self.draw.output_tensor(self.seed, output, self.slot)

    def inputs(self) -> AbstractContextManager[InputSet]:
        """Return the reference on the call's inputs."""
        return self.draw.call_set(self.seed, self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How close a call's outputs are to the reference in its own formats: cheap to tell."""

    disagreement: float
    """Largest root mean square of an output's relative errors; 0 without outputs of floats."""
    far_share: float
    """Largest share of an output's elements that are far by their own size."""

    @property
    def is_far(self) -> bool:
        """Whether so many elements are far that their condition has to be asked for."""
        return self.far_share >= TOLD_SHARE


def audit_precision(draw: SharedDraw) -> PrecisionAudited:
    """Return the errors of the first run on the least exact of the loaded seeds.

    Which seed that is tells the agreement with the reference in its own formats. Without an audit:
    why there is none.

    Raises:
        TaskInvalidError: the reference raises.
    """
    found = {seed: _disagreement(CallOutputs(draw=draw, seed=seed)) for seed in draw.loaded}
    seed = max(found, key=lambda s: found[s])
    audited = audit_seed(draw, seed, with_elements=True)
    draw.audited_disagreement = found[seed]
    return audited


def agreement(call: CallOutputs) -> Agreement:
    """Return how close a call's outputs are to the reference in its own formats."""
    shares = (
        far_share(actual, expected) for actual, expected in _picked(call) if is_measurable(expected)
    )
    return Agreement(disagreement=_disagreement(call), far_share=max(shares, default=0.0))


def _disagreement(call: CallOutputs) -> float:
    return max((_rms(actual, expected) for actual, expected in _picked(call)), default=0.0)


def _picked(call: CallOutputs) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield the picked rows of each output of floats: as written, and as expected."""
    for index, expected in enumerate(call.expected()):
        if _is_auditable(expected):
            pick = _Pick.of(expected, call.draw.seeds[call.seed])
            yield pick.rows(call.actual(index)), pick.rows(expected)


def audit_seed(draw: SharedDraw, seed: int, *, with_elements: bool = False) -> PrecisionAudited:
    """Return the errors of the first run on one loaded seed, or why there are none.

    Args:
        draw: The draw.
        seed: Index of a loaded seed.
        with_elements: Whether to look for elements that are far from the reference by their own
            size.

    Raises:
        TaskInvalidError: the reference raises.
    """
    return audit_call(CallOutputs(draw=draw, seed=seed), with_elements=with_elements)


def audit_call(call: CallOutputs, *, with_elements: bool) -> PrecisionAudited:
    """Return the errors of one call's outputs, or why there are none; else as `audit_seed`."""
    draw, expected = call.draw, call.expected()
    floats = [i for i, tensor in enumerate(expected) if _is_auditable(tensor)]
    if not floats:
        return PrecisionAudited(note="the outputs are whole numbers")
    if draw.is_lean:
        return _audit_rows(call, expected, floats, with_elements=with_elements)
    picks = {i: _Pick.of(expected[i], draw.seeds[call.seed]) for i in floats}
    actual = {i: picks[i].rows(call.actual(i)) for i in floats}
    rounded = {i: picks[i].rows(expected[i]) for i in floats}
    # Bits that the task asks for are counted exactly, whatever that takes.
    is_asked = draw.prepared.task.least_bits > 0
    far = _with_far(actual, rounded) if with_elements else ()
    if (
        not is_asked
        and not far
        and draw.prepared.exact_seconds(_TRIALS) > _BUDGET_SECONDS[expected[0].device.type]
    ):
        bits = min(effective_bits(_rms(actual[i], rounded[i])) for i in floats)
        if bits >= CLEAR_BITS:
            return PrecisionAudited(
                note=f"{bits:.1f} bits agree with the reference, which takes too long in float64",
                agreeing_bits=bits,
            )
    with call.inputs() as input_set:
        try:
            outputs = _exact(draw, input_set)
        except TaskInvalidError as error:
            return PrecisionAudited(note=f"no float64 result: {error.message}")
        exact = {i: picks[i].rows(tensor) for i, tensor in enumerate(outputs) if i in picks}
        eager = rounded
        if not _is_eager_expected(draw):
            own = input_set.run()
            eager = {i: picks[i].rows(own[i]) for i in floats}
        audits = [_audit(actual[i], rounded[i], eager[i], exact[i]) for i in floats]
        found = None
        if far:
            runs = (perturbed(input_set, input_set.inputs, s) for s in PERTURBATION_SEEDS)
            moved = [{i: picks[i].rows(outputs[i]) for i in far} for outputs in runs]
            found = _far(far, actual, rounded, exact, moved)
    return PrecisionAudited(audit=max(audits, key=_badness), far=found)


def _with_far(actual: _Rows, expected: _Rows) -> tuple[int, ...]:
    """Return the outputs so many of whose elements are far that their condition is asked for."""
    return tuple(
        index
        for index, output in expected.items()
        if is_measurable(output) and far_share(actual[index], output) >= TOLD_SHARE
    )


def _far(
    outputs: Sequence[int],
    actual: _Rows,
    expected: _Rows,
    exact: _Rows,
    moved: Sequence[_Rows],
) -> FarElements:
    found = (
        far_elements(actual[i], expected[i], exact[i], [run[i] for run in moved]) for i in outputs
    )
    return max(found, key=lambda far: far.share)


def _audit_rows(
    call: CallOutputs,
    expected: Sequence[torch.Tensor],
    floats: Sequence[int],
    *,
    with_elements: bool,
) -> PrecisionAudited:
    """Return the errors in some rows of the batch, where the reference runs on them alone."""
    try:
        with call.inputs() as input_set:
            return _rows_audited(call, input_set, expected, floats, with_elements=with_elements)
    except TaskInvalidError as error:
        return PrecisionAudited(note=f"{_TOO_LARGE}, or on a part of it: {error.message}")
    finally:
        call.draw.drop_copies()


def _rows_audited(
    call: CallOutputs,
    input_set: InputSet,
    outputs: Sequence[torch.Tensor],
    floats: Sequence[int],
    *,
    with_elements: bool,
) -> PrecisionAudited:
    draw = call.draw
    # A quarter: what is looked at is there in float32 and float64, with the reference's own.
    elements = _PICKED_ELEMENTS[outputs[0].device.type] // 4
    rows = batch_slice(outputs, input_set.inputs, elements=elements, seed=draw.seeds[call.seed])
    if rows is None:
        return PrecisionAudited(note=f"{_TOO_LARGE}, and has no batch of small rows")
    tolerance = draw.tolerance.rtol + draw.tolerance.atol
    if not is_independent(rows, input_set, outputs, tolerance=tolerance):
        return PrecisionAudited(note=f"{_TOO_LARGE}, and no row is independent of the others")
    inputs = rows.inputs(input_set)
    whole = input_set.run(dtype=torch.float64, inputs=inputs)
    exact = {i: whole[i] for i in floats}
    actual = {i: rows.of(call.actual(i)) for i in floats}
    expected = {i: rows.of(outputs[i]) for i in floats}
    eager = expected
    if not _is_eager_expected(draw):
        own = input_set.run(inputs=inputs)
        eager = {i: own[i] for i in floats}
    audits = [_audit(actual[i], expected[i], eager[i], exact[i]) for i in floats]
    found = None
    if with_elements and (far := _with_far(actual, expected)):
        runs = [perturbed(input_set, inputs, s) for s in PERTURBATION_SEEDS]
        found = _far(far, actual, expected, exact, [dict(enumerate(run)) for run in runs])
    return PrecisionAudited(
        audit=max(audits, key=_badness),
        far=found,
        note=f"on {rows.end - rows.start} of {rows.size} rows of the batch: {_TOO_LARGE}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pick:
    """Some rows of an output, evenly spaced: a distribution needs no more."""

    groups: int
    inner: int
    start: int
    step: int

    @classmethod
    def of(cls, output: torch.Tensor, seed: int) -> Self:
        """Return which rows to take; the secret seed tells where they start."""
        groups, inner = group_shape(tuple(output.shape))
        step = max(groups * inner // _PICKED_ELEMENTS[output.device.type], 1)
        step = min(step, groups)
        return cls(groups=groups, inner=inner, start=seed % step, step=step)

    def rows(self, output: torch.Tensor) -> torch.Tensor:
        """Return the picked rows of an output, `(rows, inner)`."""
        return output.reshape(self.groups, self.inner)[self.start :: self.step]


def _exact(draw: SharedDraw, input_set: InputSet) -> tuple[torch.Tensor, ...]:
    started = time.perf_counter()
    exact = input_set.run(dtype=torch.float64)
    draw.prepared.note_exact_seconds(time.perf_counter() - started)
    return exact


def _is_eager_expected(draw: SharedDraw) -> bool:
    """Return whether what is expected is computed as eager PyTorch computes it when timed."""
    module = draw.prepared.module
    return not module.is_narrow and not module.allows_tf32


def _is_auditable(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.numel() > 0


def _audit(
    actual: torch.Tensor, expected: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor
) -> PrecisionAudit:
    stride = -(-exact.numel() // _SAMPLE_ELEMENTS)
    squares, largest, sample = 0.0, 0.0, []
    for part in relative_errors(actual, exact):
        largest = max(largest, float(part.max()))
        sample.append(part.flatten()[::stride].clone())
        squares += float(part.square_().sum())
    median, p99 = _quantiles(torch.cat(sample), (0.5, 0.99))
    rms = math.sqrt(squares / exact.numel())
    reference = _rms(expected, exact)
    return PrecisionAudit(
        median_error=median,
        p99_error=p99,
        max_error=largest,
        rms_error=rms,
        reference_rms_error=reference,
        eager_rms_error=reference if eager is expected else _rms(eager, exact),
        effective_bits=effective_bits(rms),
        element_count=exact.numel(),
    )


def _rms(actual: torch.Tensor, exact: torch.Tensor) -> float:
    squares = sum(float(part.square_().sum()) for part in relative_errors(actual, exact))
    return math.sqrt(squares / exact.numel())


def _quantiles(values: torch.Tensor, shares: Sequence[float]) -> tuple[float, ...]:
    ordered = values.sort().values
    return tuple(float(ordered[int(share * (len(ordered) - 1))]) for share in shares)


def _badness(audit: PrecisionAudit) -> tuple[bool, float]:
    return audit.rms_error >= _RATIO * audit.reference_rms_error, audit.rms_error
