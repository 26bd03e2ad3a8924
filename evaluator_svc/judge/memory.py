"""Whether a workload fits: what a draw, its runner and the judge need, against what is there.

Knows nothing of the reference beyond the sizes of its tensors.
"""

import os
from collections.abc import Sequence
from typing import Any, Final

import torch

from evaluator_svc.exchange import OUTPUT_SLOTS, SEED_COUNT
from evaluator_svc.judge.layout import tensor_bytes
from kernel_foundry.domain.admission import NamedTensor, TensorRole

_USABLE: Final = 0.9
"""Share of memory that may be asked for."""


def needed_bytes(tensors: Sequence[NamedTensor]) -> int:
    """Return the most bytes that an evaluation holds at once.

    For each seed the shared buffer, the judge's pristine copies and the expected outputs; and
    one set of inputs and outputs in the runner.
    """
    outputs = sum(tensor_bytes(t) for t in tensors if t.role is TensorRole.OUTPUT)
    sources = sum(tensor_bytes(t) for t in tensors if t.role is not TensorRole.OUTPUT)
    per_seed = 2 * sources + (OUTPUT_SLOTS + 1) * outputs
    return SEED_COUNT * per_seed + sources + outputs


def least_bytes(input_values: Sequence[Any]) -> int:
    """Return what inputs alone need, from shapes on the meta device."""
    sizes = [v.numel() * v.element_size() for v in input_values if isinstance(v, torch.Tensor)]
    return 2 * SEED_COUNT * sum(sizes)


def memory_refusal(needed: int, device_bytes: int) -> str | None:
    """Return why `needed` bytes cannot be had, or None.

    A device that does not tell its memory (0 bytes) has the machine's.
    """
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = int(_USABLE * min(pages, device_bytes or pages))
    if needed <= limit:
        return None
    return (
        f"does not fit the memory: an evaluation needs {needed / 1e9:.1f} GB, there are"
        f" {limit / 1e9:.1f} GB; choose smaller sizes in the sidecar"
    )
