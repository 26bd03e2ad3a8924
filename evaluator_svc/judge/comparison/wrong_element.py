"""One wrong element in words: where it lies, what was expected and what came."""

import math

import torch

from evaluator_svc.judge.draws.expected_output import ExpectedOutput
from evaluator_svc.judge.reference.formats import computable
from kernel_foundry.domain.task import Tolerance


def element_text(name: str, shape: tuple[int, ...], index: int) -> str:
    """Return an element by its flat index as in Python: `out[3, 0]`."""
    places: list[int] = []
    for size in reversed(shape):
        index, place = divmod(index, size)
        places.insert(0, place)
    return f"{name}[{', '.join(map(str, places))}]" if places else name


def values_text(
    actual: torch.Tensor, expected: ExpectedOutput, tolerance: Tolerance, index: int
) -> str:
    """Return the expected and the actual value in words, with the allowed error if there is one.

    Args:
        actual: The output, flat.
        expected: The expected output, with as many elements.
        tolerance: The output's tolerance.
        index: Flat index of the element.
    """
    place = torch.tensor([index], device=expected.tensor.device)
    asked = computable(expected.tensor.reshape(-1)[place]).item()
    came = computable(actual[index : index + 1]).item()
    if expected.is_exact:
        return f"{asked} was expected, {came} came"
    bound = float(expected.bound_at(place, tolerance))
    allowed = f" ({bound:.2g} off is allowed)" if math.isfinite(bound) else ""
    return f"{asked:.7g} was expected, {came:.7g} came{allowed}"
