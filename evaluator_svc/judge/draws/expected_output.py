"""Expected values of one output, with the scales that its tolerance is in units of.

The comparison with what a candidate wrote is in `comparison/compare.py`.
"""

from dataclasses import dataclass, replace

import torch

from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.tensors.scales import (
    Groups,
    group_scale,
    groups_of,
    scale_without_inputs,
)
from evaluator_svc.judge.tensors.tensor_parts import all_finite, none_is_nan
from kernel_foundry.domain.task import Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedOutput:
    """Expected values of one output, ready for comparison."""

    tensor: torch.Tensor
    """Contiguous."""
    scale: torch.Tensor | None
    """`(groups,)` float32; None: 1 everywhere."""
    groups: Groups
    memory: JudgeMemory
    """Where all of this lies; it compares."""

    def without_inputs(self) -> "ExpectedOutput":
        """Return the same for inputs of zeros (`scale_without_inputs`)."""
        if self.scale is None:
            return self
        return replace(self, scale=scale_without_inputs(self.tensor, self.scale))

    @property
    def is_exact(self) -> bool:
        """True for integers and booleans, which have no tolerance."""
        return not self.tensor.is_floating_point()

    def bound_at(self, places: torch.Tensor, tolerance: Tolerance) -> torch.Tensor:
        """Return the largest allowed error at flat indices, float32."""
        values = self.tensor.reshape(-1)[places]
        if self.is_exact:
            return torch.zeros(values.shape, device=values.device)
        bound = values.float().abs().mul_(tolerance.rtol)
        if self.scale is None:
            return bound.add_(tolerance.atol)
        group = places // self.groups.inner % self.groups.count
        return bound.add_(tolerance.atol * self.scale[group])

    def is_finite(self) -> bool:
        """Return whether all values are finite, looked at in pieces."""
        return self.is_exact or all_finite(self.tensor)

    def has_no_nan(self) -> bool:
        """Return whether all values are numbers or infinities, looked at in pieces."""
        return self.is_exact or none_is_nan(self.tensor)

    def bound(self, tolerance: Tolerance) -> torch.Tensor:
        """Return the largest allowed error of each element, in the output's shape, float32."""
        if self.is_exact:
            return torch.zeros(self.tensor.shape, device=self.tensor.device)
        bound = self.tensor.float().abs().mul_(tolerance.rtol)
        return bound.add_(tolerance.atol * self.scales())

    def scales(self) -> torch.Tensor:
        """Return the scale of each element, float32, to be broadcast over the output's shape."""
        if self.scale is None:
            return torch.ones((), device=self.tensor.device)
        lines = self.groups.lines(self.tensor)
        scale = self.groups.scale_of(self.scale, 0, len(lines))
        return scale.expand(lines.shape).reshape(self.tensor.shape)


def expect(tensor: torch.Tensor, *, is_scaled: bool, memory: JudgeMemory) -> ExpectedOutput:
    """Return `tensor`, which lies in `memory`, with the scale of each of its groups."""
    is_scaled = is_scaled and tensor.is_floating_point() and tensor.numel() > 0
    return ExpectedOutput(
        tensor=tensor,
        scale=group_scale(tensor) if is_scaled else None,
        groups=groups_of(tuple(tensor.shape)),
        memory=memory,
    )
