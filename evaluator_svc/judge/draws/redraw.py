"""New parameters for every evaluation, so that none can be left out or known beforehand.

A weight that starts at 1 or a bias that starts at 0 hides a kernel that drops it. Scale, sign
and structure (zeros of a mask, order of a decay) stay as the reference made them. Knows nothing
of inputs, which the reference draws itself.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch
from torch import nn

from evaluator_svc.judge.reference.formats import computable

_SPREAD: Final = 0.5
"""A value v becomes one between 0.5 v and 1.5 v: far outside any tolerance, same magnitude."""

_ZERO_VECTOR_DEVIATION: Final = 0.2
"""Standard deviation of what was a zero bias: seen beside activations of magnitude 1."""

_STATE_STREAM: Final = 0x5851_F42D_4C95_7F2D
"""Tells the seed of parameters from that of inputs."""

_RUNNING_STATISTICS: Final = ("running_mean", "running_var")
"""Buffers that training would have changed; all others are constants of the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedrawRule:
    """How one tensor of the module's state is drawn anew."""

    path: str
    base: torch.Tensor
    """As the reference made it."""
    is_fixed: bool
    """Not redrawn: integers, masks, tables."""
    zero_deviation: float
    """Standard deviation of the new values when all of `base` is zero, else 0."""


def redraw_rules(model: nn.Module) -> tuple[RedrawRule, ...]:
    """Return the rules for the parameters, then the buffers, of `model`."""
    return tuple(_rules(model))


def redraw(rules: tuple[RedrawRule, ...], seed: int) -> dict[str, torch.Tensor]:
    """Return new values by path. The same seed gives the same values on the same device."""
    # Not the seed itself: inputs start from it, and parameters must not repeat their values.
    device = rules[0].base.device if rules else torch.device("cpu")
    generator = torch.Generator(device).manual_seed((seed ^ _STATE_STREAM) % 2**63)
    return {rule.path: _new_values(rule, generator) for rule in rules}


def _rules(model: nn.Module) -> Iterator[RedrawRule]:
    for path, parameter in model.named_parameters():
        yield _rule(path, parameter.detach(), is_fixed=not parameter.is_floating_point())
    for path, buffer in model.named_buffers():
        is_statistic = path.rpartition(".")[2] in _RUNNING_STATISTICS
        is_fixed = not (is_statistic and buffer.is_floating_point())
        yield _rule(path, buffer.detach(), is_fixed=is_fixed)


def _rule(path: str, base: torch.Tensor, *, is_fixed: bool) -> RedrawRule:
    base = base.contiguous()
    is_zero = not is_fixed and base.numel() > 0 and not bool(computable(base).any())
    fan_in = base[0].numel() if base.ndim > 1 else 1
    deviation = min(_ZERO_VECTOR_DEVIATION, 1.0 / math.sqrt(fan_in))
    return RedrawRule(
        path=path, base=base, is_fixed=is_fixed, zero_deviation=deviation if is_zero else 0.0
    )


def _new_values(rule: RedrawRule, generator: torch.Generator) -> torch.Tensor:
    if rule.is_fixed:
        return rule.base.clone()
    shape = rule.base.shape
    if rule.zero_deviation:
        noise = torch.randn(
            shape, generator=generator, dtype=torch.float32, device=generator.device
        )
        return noise.mul_(rule.zero_deviation).to(rule.base.dtype)
    factor = torch.rand(shape, generator=generator, dtype=torch.float32, device=generator.device)
    factor.mul_(2.0 * _SPREAD).add_(1.0 - _SPREAD)
    return factor.mul_(computable(rule.base)).to(rule.base.dtype)
