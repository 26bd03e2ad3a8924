"""How exactly a candidate computed: the distribution of its errors against float64.

The tolerance sees the largest error, this sees all of them: a shortcut through 16 bits whose
errors average out of the maximum still has a root mean square far above the reference's own.
Only measures; what it means for a candidate is decided where its object code is known.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import torch

from evaluator_svc.judge.comparison.batch_slice import batch_slice, is_independent
from evaluator_svc.judge.comparison.call_outputs import CallOutputs
from evaluator_svc.judge.comparison.exact_reference import reference_outputs
from evaluator_svc.judge.comparison.far_elements import (
    PERTURBATION_SEEDS,
    ROUNDING_SEEDS,
    TOLD_SHARE,
    ReferenceRuns,
    far_elements,
    far_error,
    far_share,
    is_measurable,
    perturbed,
)
from evaluator_svc.judge.comparison.output_errors import (
    OutputLines,
    has_uneven_lines,
    least_exact,
    most_exact_lines,
    rms_error,
    small_columns,
)
from evaluator_svc.judge.comparison.rounding_bias import rounding_bias
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.formats import is_narrow
from evaluator_svc.judge.tensors.rounding_noise import RoundingNoise
from evaluator_svc.judge.tensors.scales import groups_of
from evaluator_svc.messages.judge import FarElements, PrecisionReply
from kernel_foundry.domain.evaluation import PrecisionAudit, effective_bits
from kernel_foundry.errors import TaskInvalidError

_CLEAR_BITS: Final = 17.0
"""Bits of agreement with the float32 reference from which an expensive audit is left out: the
figures that anything is decided by, 13 and 16 bits, cannot be reached from there."""

_CLEAR_DOUBLE_BITS: Final = 41.0
"""The same of a task of float64, where 40 bits decide."""

_BUDGET_SECONDS: Final = {"cpu": 0.4, "cuda": 0.07}
"""A fifth of a verdict; a reference that takes longer in float64 is run only for cause."""

_TRIALS: Final = 2
"""Runs in float64 before their time is believed: the first one loads the device's kernels."""

_PICKED_ELEMENTS: Final = {"cpu": 1 << 20, "cuda": 1 << 24}
"""About so many elements are audited, in whole rows."""
_UNUSUAL_SHARE: Final = 4
"""One in so many of these is audited on each kind of unusual values, of which there are several."""

_NOISE_SEED: Final = 1
"""Seed of the moved roundings."""

_TOO_LARGE: Final = "the workload is too large for a copy in float64"

_Rows = dict[int, torch.Tensor]
"""Some rows of outputs, by their place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """How close a call's outputs are to the reference in its own formats: cheap to tell."""

    disagreement: float
    """Largest root mean square of an output's relative errors; 0 without outputs of floats."""
    strain: float
    """The same in units of the rounding error of each output's own format."""
    far_share: float
    """Largest share of an output's elements that are far by their own size."""

    @property
    def is_far(self) -> bool:
        """Whether so many elements are far that their condition has to be asked for."""
        return self.far_share >= TOLD_SHARE


def clear_bits(draw: SharedDraw) -> float:
    """Return how many bits of agreement with the reference's own formats leave nothing to ask."""
    is_double = draw.prepared.module.rounding is torch.float64
    return _CLEAR_DOUBLE_BITS if is_double else _CLEAR_BITS


def audit_precision(draw: SharedDraw) -> PrecisionReply:
    """Return the errors of the first run on the least exact of the loaded seeds.

    Which seed that is tells the agreement with the reference in its own formats. Without an audit:
    why there is none.

    Raises:
        TaskInvalidError: the reference raises.
    """
    calls = {seed: CallOutputs(draw=draw, seed=seed) for seed in draw.loaded}
    strains = {seed: _strain(call, _errors(call)) for seed, call in calls.items()}
    seed = max(strains, key=lambda s: strains[s])
    audited = audit_seed(draw, seed, with_elements=True)
    draw.audited_strain = strains[seed]
    return audited


def agreement(call: CallOutputs) -> Closeness:
    """Return how close a call's outputs are to the reference in its own formats."""
    least = _far_errors(call.draw)
    shares = (
        far_share(actual, expected, least[index])
        for index, actual, expected in _picked(call)
        if is_measurable(expected)
    )
    errors = _errors(call)
    return Closeness(
        disagreement=max(errors.values(), default=0.0),
        strain=_strain(call, errors),
        far_share=max(shares, default=0.0),
    )


def _errors(call: CallOutputs) -> dict[int, float]:
    """Return the root mean square of the relative errors of each output of floats."""
    return {index: rms_error(actual, expected) for index, actual, expected in _picked(call)}


def _strain(call: CallOutputs, errors: Mapping[int, float]) -> float:
    formats = call.draw.prepared.module.output_roundings
    strains = (error / torch.finfo(formats[i]).eps for i, error in errors.items())
    return max(strains, default=0.0)


def _picked(call: CallOutputs) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Yield each output of floats and its picked rows: as written, and as expected."""
    for index, expected in enumerate(call.expected()):
        if _is_auditable(expected):
            pick = _Pick.of(expected, call.draw.seeds[call.seed])
            yield index, pick.rows(call.actual(index)), pick.rows(expected)


def audit_seed(draw: SharedDraw, seed: int, *, with_elements: bool = False) -> PrecisionReply:
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


def audit_call(
    call: CallOutputs,
    *,
    with_elements: bool,
    held: Container[int] | None = None,
    is_unusual: bool = False,
) -> PrecisionReply:
    """Return the errors of one call's outputs, or why there are none; else as `audit_seed`.

    Of the outputs in `held`; None: of all. On unusual values fewer rows are looked at.
    """
    draw, expected = call.draw, call.expected()
    is_held = [held is None or i in held for i in range(len(expected))]
    floats = [i for i, tensor in enumerate(expected) if is_held[i] and _is_auditable(tensor)]
    if not floats:
        return PrecisionReply(note="the outputs are whole numbers")
    if draw.is_lean:
        return _audit_rows(call, expected, floats, with_elements=with_elements)
    share = _UNUSUAL_SHARE if is_unusual else 1
    picks = {i: _Pick.of(expected[i], draw.seeds[call.seed], share) for i in floats}
    actual = {i: picks[i].rows(call.actual(i)) for i in floats}
    rounded = {i: picks[i].rows(expected[i]) for i in floats}
    # Bits that the task asks for are counted exactly, whatever that takes.
    is_asked = draw.prepared.task.least_bits > 0
    far = _with_far(draw, actual, rounded) if with_elements else ()
    if (
        not is_asked
        and not far
        and draw.prepared.exact_seconds(_TRIALS) > _BUDGET_SECONDS[expected[0].device.type]
    ):
        bits = min(effective_bits(rms_error(actual[i], rounded[i])) for i in floats)
        if bits >= clear_bits(draw):
            return PrecisionReply(
                note=f"{bits:.1f} bits agree with the reference, which takes too long in float64",
                agreeing_bits=bits,
            )
    formats = draw.prepared.module.output_roundings

    def in_rows(outputs: Sequence[torch.Tensor]) -> _Rows:
        return {i: picks[i].rows(outputs[i]) for i in floats}

    with call.inputs() as input_set:
        known = reference_outputs(input_set, expected)
        draw.prepared.note_exact_seconds(known.seconds)
        own = in_rows(known.own)
        eager = own if _is_eager_expected(draw) else in_rows(input_set.run())
        exact = in_rows(known.exact)
        compared = _compared(actual, own, eager, exact)
        found = None
        if far:
            runs = _further_runs(
                input_set, known.dtype, lambda run: {i: picks[i].rows(run[i]) for i in far}
            )
            found = _far(draw, far, rounded, compared, runs)
        lines = _exact_lines(input_set, formats, compared, lambda: in_rows(input_set.run()))
    audited = _audited(draw, compared, with_columns=with_elements)
    return replace(audited, far=found, lines=lines, note=known.note)


def _exact_lines(
    input_set: InputSet,
    formats: Sequence[torch.dtype],
    compared: Mapping[int, OutputLines],
    run_again: Callable[[], _Rows],
) -> PrecisionAudit | None:
    """Return the audit of lines in which the reference is far more exact than in others.

    None where it shows nothing. A few inexact lines would excuse all others.
    """
    uneven = [i for i, c in compared.items() if not is_narrow(formats[i]) and has_uneven_lines(c)]
    if not uneven:
        return None
    with RoundingNoise(seed=_NOISE_SEED, device=input_set.module.device):
        moved = run_again()
    worst = least_exact([most_exact_lines(compared[i], moved[i]) for i in uneven])
    return worst if worst is not None and worst.effective_bits < _CLEAR_BITS else None


def _far_errors(draw: SharedDraw) -> tuple[float, ...]:
    """Return for each output the relative error from which an element is far."""
    module = draw.prepared.module
    formats = module.output_roundings
    return tuple(far_error(f, allows_tf32=module.allows_tf32) for f in formats)


def _with_far(draw: SharedDraw, actual: _Rows, expected: _Rows) -> tuple[int, ...]:
    """Return the outputs so many of whose elements are far that their condition is asked for."""
    least = _far_errors(draw)
    return tuple(
        index
        for index, output in expected.items()
        if is_measurable(output) and far_share(actual[index], output, least[index]) >= TOLD_SHARE
    )


def _further_runs(
    input_set: InputSet,
    dtype: torch.dtype,
    rows_of: Callable[[Sequence[torch.Tensor]], _Rows],
    inputs: Sequence[torch.Tensor] | None = None,
) -> tuple[list[_Rows], list[_Rows]]:
    """Return rows of the reference on perturbed inputs, and with its results moved."""
    given = input_set.inputs if inputs is None else inputs
    moved = [rows_of(perturbed(input_set, given, s, dtype)) for s in PERTURBATION_SEEDS]
    noisy = []
    for seed in ROUNDING_SEEDS:
        with RoundingNoise(seed=seed, device=input_set.module.device):
            noisy.append(rows_of(input_set.run(inputs=given)))
    return moved, noisy


def _far(
    draw: SharedDraw,
    outputs: Sequence[int],
    expected: _Rows,
    compared: Mapping[int, OutputLines],
    runs: tuple[Sequence[_Rows], Sequence[_Rows]],
) -> FarElements:
    least, (moved, noisy), found = _far_errors(draw), runs, []
    for i in outputs:
        known = compared[i]
        further = ReferenceRuns(
            perturbed=tuple(run[i] for run in moved),
            rounded=(known.eager, *(run[i] for run in noisy)),
        )
        found.append(far_elements(known.actual, expected[i], known.exact, further, least[i]))
    return max(found, key=lambda far: far.share)


def _audit_rows(
    call: CallOutputs,
    expected: Sequence[torch.Tensor],
    floats: Sequence[int],
    *,
    with_elements: bool,
) -> PrecisionReply:
    """Return the errors in some rows of the batch, where the reference runs on them alone."""
    try:
        with call.inputs() as input_set:
            return _rows_audited(call, input_set, expected, floats, with_elements=with_elements)
    except TaskInvalidError as error:
        return PrecisionReply(note=f"{_TOO_LARGE}, or on a part of it: {error.message}")
    finally:
        call.draw.drop_copies()


def _rows_audited(
    call: CallOutputs,
    input_set: InputSet,
    outputs: Sequence[torch.Tensor],
    floats: Sequence[int],
    *,
    with_elements: bool,
) -> PrecisionReply:
    draw = call.draw
    # A quarter: what is looked at is there in float32 and float64, with the reference's own.
    elements = _PICKED_ELEMENTS[outputs[0].device.type] // 4
    rows = batch_slice(outputs, input_set.inputs, elements=elements, seed=draw.seeds[call.seed])
    if rows is None:
        return _agreed(call, f"{_TOO_LARGE}, and has no batch of small rows")
    tolerance = draw.tolerance.rtol + draw.tolerance.atol
    if not is_independent(rows, input_set, outputs, tolerance=tolerance):
        return _agreed(call, f"{_TOO_LARGE}, and no row is independent of the others")
    inputs = rows.inputs(input_set)
    cut = tuple(map(rows.of, outputs))
    known = reference_outputs(input_set, cut, inputs)
    expected = {i: cut[i] for i in floats}
    eager = known.own if _is_eager_expected(draw) else input_set.run(inputs=inputs)
    actual = {i: rows.of(call.actual(i)) for i in floats}
    compared = _compared(actual, *(dict(enumerate(o)) for o in (known.own, eager, known.exact)))
    found = None
    if with_elements and (far := _with_far(draw, actual, expected)):
        runs = _further_runs(input_set, known.dtype, lambda run: dict(enumerate(run)), inputs)
        found = _far(draw, far, expected, compared, runs)
    formats = draw.prepared.module.output_roundings
    as_lines = {i: _as_lines(c) for i, c in compared.items()}
    lines = _exact_lines(
        input_set,
        formats,
        as_lines,
        lambda: {i: _lines(o) for i, o in enumerate(input_set.run(inputs=inputs))},
    )
    note = f"on {rows.end - rows.start} of {rows.size} rows of the batch: {_TOO_LARGE}"
    return replace(
        _audited(draw, compared, with_columns=with_elements),
        far=found,
        lines=lines,
        note=f"{note}; {known.note}" if known.note else note,
    )


def _lines(output: torch.Tensor) -> torch.Tensor:
    return groups_of(tuple(output.shape)).lines(output)


def _as_lines(compared: OutputLines) -> OutputLines:
    return OutputLines(
        actual=_lines(compared.actual),
        expected=_lines(compared.expected),
        eager=_lines(compared.eager),
        exact=_lines(compared.exact),
    )


def _compared(actual: _Rows, expected: _Rows, eager: _Rows, exact: _Rows) -> dict[int, OutputLines]:
    return {
        i: OutputLines(actual=rows, expected=expected[i], eager=eager[i], exact=exact[i])
        for i, rows in actual.items()
    }


def _audited(
    draw: SharedDraw, compared: Mapping[int, OutputLines], *, with_columns: bool
) -> PrecisionReply:
    """Return the audits of the least exact outputs."""
    formats = draw.prepared.module.output_roundings
    is_task_narrow = draw.prepared.module.is_narrow
    wide = [c for i, c in compared.items() if is_task_narrow and not is_narrow(formats[i])]
    biases = [
        rounding_bias(c, formats[i])
        for i, c in (compared.items() if with_columns else ())
        if formats[i] in (torch.float16, torch.bfloat16)
    ]
    own = [c for c in compared.values() if c not in wide]
    columns = [
        part
        for c in (compared.values() if with_columns else ())
        if (part := small_columns(c)) is not None
    ]
    return PrecisionReply(
        audit=least_exact(own),
        wide=least_exact(wide),
        columns=least_exact(columns),
        is_by_element=not draw.prepared.traits.combines,
        rounding_bias=max(biases, key=abs, default=0.0),
    )


def _agreed(call: CallOutputs, reason: str) -> PrecisionReply:
    """Return no audit, with the bits that agree with the reference's own where they say enough."""
    bits = effective_bits(max(_errors(call).values()))
    is_enough = bits >= clear_bits(call.draw)
    note = f"{reason}; {bits:.1f} bits agree with the reference" if is_enough else reason
    return PrecisionReply(note=note, agreeing_bits=bits if is_enough else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pick:
    """Some rows of an output, evenly spaced: a distribution needs no more."""

    groups: int
    inner: int
    start: int
    step: int

    @classmethod
    def of(cls, output: torch.Tensor, seed: int, share: int = 1) -> Self:
        """Return which rows to take, one in `share` of the usual ones.

        The secret seed tells where they start.
        """
        groups, inner = groups_of(tuple(output.shape)).lines(output).shape
        step = max(share * groups * inner // _PICKED_ELEMENTS[output.device.type], 1)
        step = min(step, groups)
        return cls(groups=groups, inner=inner, start=seed % step, step=step)

    def rows(self, output: torch.Tensor) -> torch.Tensor:
        """Return the picked rows of an output, `(rows, inner)`."""
        return output.reshape(self.groups, self.inner)[self.start :: self.step]


def _is_eager_expected(draw: SharedDraw) -> bool:
    """Return whether what is expected is computed as eager PyTorch computes it when timed."""
    module = draw.prepared.module
    return not module.is_narrow and not module.allows_tf32


def _is_auditable(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.numel() > 0
