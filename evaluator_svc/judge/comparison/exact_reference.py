"""The outputs that errors are measured against: the reference in float64 if that runs.

Where it does not run, because the reference asks for a format or has operators without float64, its
own outputs are used instead, and a run with every rounding moved shows how exact they are. The same
is done for a task of float64.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.tensors.rounding_noise import RoundingNoise
from kernel_foundry.errors import TaskInvalidError

_NOISE_SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceOutputs:
    """Outputs that errors are measured against."""

    exact: tuple[torch.Tensor, ...]
    own: tuple[torch.Tensor, ...]
    """Outputs whose errors against `exact` are the reference's own errors."""
    dtype: torch.dtype
    """Format in which `exact` was computed."""
    seconds: float
    """Time that computing them took."""
    note: str = ""
    """Why `exact` is not float64; empty if it is."""


def reference_outputs(
    input_set: InputSet,
    expected: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor] | None = None,
) -> ReferenceOutputs:
    """Return the outputs that errors are measured against.

    Args:
        input_set: The reference.
        expected: Its outputs in its own formats.
        inputs: What it ran on; None: the set's own.

    Raises:
        TaskInvalidError: it does not run a second time.
    """
    started = time.perf_counter()
    is_double, note = input_set.module.rounding is torch.float64, ""
    try:
        exact = tuple(expected) if is_double else input_set.run(dtype=torch.float64, inputs=inputs)
    except TaskInvalidError as error:
        exact = tuple(expected)
        note = f"no float64 result ({error.message}): compared with the reference's own"
    own = tuple(expected)
    if is_double or note:
        with RoundingNoise(seed=_NOISE_SEED, device=input_set.module.device):
            own = input_set.run(inputs=inputs)
    return ReferenceOutputs(
        exact=exact,
        own=own,
        dtype=torch.float32 if note else torch.float64,
        seconds=time.perf_counter() - started,
        note=note,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Outputs that are taken for the exact result of a reference."""

    outputs: tuple[torch.Tensor, ...]
    inexact_because: str = ""
    """Why they are no more exact than the reference's own; empty: they are float64."""


def exact_or_own(input_set: InputSet) -> Exact:
    """Return the reference in float64, or its own outputs where that cannot be had.

    Raises:
        TaskInvalidError: the reference raises in its own formats, too.
    """
    try:
        return Exact(outputs=input_set.run(dtype=torch.float64))
    except torch.OutOfMemoryError:
        reason = "there is no memory for it"
    except TaskInvalidError as error:
        reason = error.message
    return Exact(outputs=input_set.expected(), inexact_because=reason)
