"""Whether a workload fits: what a draw, its runner and the judge need, against what is there.

In sets of everything that one seed decides (inputs, parameters, buffers and one copy of the
outputs), an evaluation holds at once:
* shared: for each seed the sources once and the outputs `OUTPUT_SLOTS` times;
* the judge's own: for each seed pristine sources and expected outputs; of a large workload those
  of one seed alone, drawn and computed again for each use, and one more while the reference or a
  baseline runs;
* in the runner: one set to take times on.
Knows nothing of the reference beyond the sizes of its tensors.
"""

from collections.abc import Sequence
from typing import Any, Final

import torch

from evaluator_svc.judge.draws.layout import tensor_bytes
from evaluator_svc.messages.exchange import OUTPUT_SLOTS, SEED_COUNT
from kernel_foundry.domain.admission import NamedTensor, TensorRole

KEPT_SHARE: Final = 0.5
"""A workload is large when an evaluation that keeps every copy needs more of the memory."""

_USABLE: Final = 0.9
"""Share of memory that may be asked for."""


def needed_bytes(tensors: Sequence[NamedTensor], *, is_large: bool) -> int:
    """Return the most bytes that an evaluation holds at once."""
    outputs = sum(tensor_bytes(t) for t in tensors if t.role is TensorRole.OUTPUT)
    sources = sum(tensor_bytes(t) for t in tensors if t.role is not TensorRole.OUTPUT)
    shared = SEED_COUNT * (sources + OUTPUT_SLOTS * outputs)
    judge_sets = 2 if is_large else SEED_COUNT
    return shared + (judge_sets + 1) * (sources + outputs)


def least_bytes(input_values: Sequence[Any]) -> int:
    """Return what the shared inputs alone need, from shapes on the meta device."""
    sizes = [v.numel() * v.element_size() for v in input_values if isinstance(v, torch.Tensor)]
    return SEED_COUNT * sum(sizes)


def memory_refusal(needed: int, total_bytes: int) -> str | None:
    """Return why `needed` bytes cannot be had of memory of `total_bytes`, or None."""
    limit = int(_USABLE * total_bytes)
    if needed <= limit:
        return None
    return (
        f"does not fit the memory: an evaluation needs {needed / 1e9:.1f} GB, there are"
        f" {limit / 1e9:.1f} GB; choose smaller sizes in the sidecar"
    )
