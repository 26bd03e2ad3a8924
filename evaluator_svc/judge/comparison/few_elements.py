"""The tolerance of outputs of so few elements that they have no scale but their own values.

A mean of a million elements of both signs comes out a hundred times smaller than usual in one draw
of a hundred, with the rounding error of any other. Rows of more elements do not: their scale is
that of all.
"""

from collections.abc import Sequence

from evaluator_svc.judge.comparison.compare import compare_output
from evaluator_svc.judge.comparison.needed_factor import most_factor, needed_factor
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.tensors.scales import MIN_GROUP
from evaluator_svc.judge.timed_calls.call_inputs import CallValues
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.errors import TaskInvalidError


def tolerance_of_few(
    draw: SharedDraw,
    addresses: Sequence[int],
    *,
    seed: int,
    output: int,
    values: CallValues | None,
) -> Tolerance:
    """Return the tolerance of an output of one call.

    It is the draw's, but an output of few elements gets a tolerance for these very inputs if that
    decides on the result. A tolerance given by hand stays, and so does that of a lean draw, which
    has no room for the copies that this takes.

    Args:
        draw: The draw.
        addresses: Addresses of the output in each slot.
        seed: Index of the inputs' seed.
        output: Index of the output.
        values: Input values of a timed call; None: as drawn.
    """
    usual, module = draw.tolerance, draw.prepared.module
    expected = draw.expected_of_call(seed, values)[output]
    is_few = expected.tensor.is_floating_point() and 0 < expected.tensor.numel() < MIN_GROUP
    is_given = draw.prepared.task.tolerance is not None or usual.is_exact(output)
    if not is_few or is_given or draw.is_lean:
        return usual
    most = usual.times(most_factor(module, usual)).of(output)
    own = usual.of(output)
    is_open = [
        compare_output(address, expected, own).mismatch_count > 0
        and compare_output(address, expected, most).mismatch_count == 0
        for address in addresses
    ]
    if not any(is_open):
        return usual
    try:
        with draw.call_set(seed, values) as reference:
            needed = needed_factor(reference, None, usual)
    except TaskInvalidError:
        return usual
    if needed is None or output in needed.left_out:
        return usual
    return usual.times(needed.factor)
