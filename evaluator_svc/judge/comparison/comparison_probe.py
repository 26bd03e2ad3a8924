"""Whether the comparison finds what differs: planted differences, counted by the usual way.

Differences are planted at places that are random each time, at the first and at the last element.
"""

import secrets
from collections.abc import Iterator
from typing import Final

import torch

from evaluator_svc.judge.comparison.compare import compare_output
from evaluator_svc.judge.draws.expected_output import ExpectedOutput
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.reference.name_table import dtype_name
from evaluator_svc.judge.tensors.scales import Groups
from evaluator_svc.messages.judge import ComparisonProbeReply, PlantedCount
from kernel_foundry.domain.task import Tolerance

_ELEMENTS: Final = 100_003
"""A prime: no multiple of any thread's share or of any vector."""
_PLACES: Final = 7
_TOLERANCE: Final = Tolerance(rtol=1e-2, atol=0.0)
"""Wide enough for bfloat16; no absolute part, so that denormals count."""
_BITS: Final = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
"""Integers of each format's size, to write a bit pattern."""
_WHOLE: Final = (torch.int32, torch.int64)


def probe_comparison(memory: JudgeMemory) -> ComparisonProbeReply:
    """Plant every sort of difference in every format; return what was counted."""
    counts = []
    for dtype in _BITS:
        for what, actual, expected, places in _floats(dtype, memory.torch_device):
            counts.append(_count(what, actual, expected, places, memory))
    for dtype in _WHOLE:
        expected = torch.arange(_ELEMENTS, device=memory.torch_device).to(dtype)
        places = _places()
        actual = expected.clone()
        actual[places] += 1
        counts.append(_count("off by one", actual, expected, places, memory))
    return ComparisonProbeReply(counts=tuple(counts))


def _floats(
    dtype: torch.dtype, device: torch.device
) -> Iterator[tuple[str, torch.Tensor, torch.Tensor, list[int]]]:
    """Yield what is planted, the actual and the expected values, and where they differ."""
    plain = torch.rand(_ELEMENTS, device=device).add_(0.5).to(dtype)
    yield "nothing", plain.clone(), plain, []
    for what, value in (("NaN", float("nan")), ("infinity", float("inf"))):
        places = _places()
        actual = plain.clone()
        actual[places] = value
        yield what, actual, plain, places
        # The reference may say the same, and then it is right.
        yield f"{what} on both sides", actual, actual.clone(), []
    for what, place in (("first element", 0), ("last element", _ELEMENTS - 1)):
        actual = plain.clone()
        actual[place] *= 1.05
        yield what, actual, plain, [place]
    places = _places()
    zeros = torch.zeros(_ELEMENTS, dtype=dtype, device=device)
    actual = zeros.clone()
    actual.view(_BITS[dtype])[places] = 1  # the least denormal, whatever arithmetic makes of it
    yield "denormal", actual, zeros, places


def _places() -> list[int]:
    """Return random places and the ends, in order."""
    inner = secrets.SystemRandom().sample(range(1, _ELEMENTS - 1), _PLACES)
    return sorted([0, *inner, _ELEMENTS - 1])


def _count(
    what: str,
    actual: torch.Tensor,
    expected: torch.Tensor,
    places: list[int],
    memory: JudgeMemory,
) -> PlantedCount:
    ready = ExpectedOutput(
        tensor=expected, scale=None, groups=Groups(count=1, inner=_ELEMENTS), memory=memory
    )
    found = compare_output(actual.data_ptr(), ready, _TOLERANCE)
    return PlantedCount(
        dtype=dtype_name(expected.dtype),
        what=what,
        planted=len(places),
        counted=found.mismatch_count,
        first_planted=places[0] if places else -1,
        first_counted=found.first_mismatch,
    )
