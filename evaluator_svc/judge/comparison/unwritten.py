"""Elements that no run wrote, told by the poison alone: nothing is expected of their values.

Each copy of an output is filled with bytes of its own, so what is a value of the candidate in one
of them cannot be poison in all.
"""

from collections.abc import Sequence
from typing import Final

import torch

from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.messages.draw import POISON_BYTES
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_PART_ELEMENTS: Final = 1 << 22
"""Elements that are looked at together."""


def unwritten_finding(draw: SharedDraw, slots: Sequence[int]) -> Finding | None:
    """Return the finding for elements that are poison in all of several slots; None: all written.

    One slot alone tells nothing: its bytes may be a value.
    """
    if len(slots) < 2:
        return None
    for seed in draw.loaded:
        for output, place in enumerate(draw.output_slots):
            copies = [draw.output_tensor(seed, output, slot).reshape(-1) for slot in slots]
            parts = zip(*(torch.split(copy, _PART_ELEMENTS) for copy in copies), strict=True)
            if count := sum(int(_unwritten(part).sum()) for part in parts):
                return _finding(place.name, count, copies[0].numel())
    return None


def _unwritten(copies: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return which elements of flat copies hold poison in each, and another byte in each."""
    held = [copy.view(torch.uint8).reshape(len(copy), copy.element_size()) for copy in copies]
    firsts = torch.stack([part[:, 0] for part in held])
    is_poison = [
        torch.stack([part.eq(byte).all(dim=1) for byte in POISON_BYTES]).any(dim=0) for part in held
    ]
    differ = firsts.sort(dim=0).values.diff(dim=0).ne(0).all(dim=0)
    return torch.stack(is_poison).all(dim=0) & differ


def _finding(name: str, count: int, total: int) -> Finding:
    what = (
        f"{name} was never written"
        if count == total
        else (f"part of {name} was never written: {count} of {total} elements")
    )
    return Finding(
        kind=FindingKind.OUTPUT_NOT_WRITTEN,
        severity=Severity.ERROR,
        message=what,
        evidence=(
            Figure(name="unwritten_elements", value=float(count)),
            Figure(name="unwritten_share", value=count / total),
        ),
        hint="Store every element of it; cover sizes that no block divides.",
    )
