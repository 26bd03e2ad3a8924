"""New parameters for every evaluation, so that none can be left out or known beforehand.

A weight that starts at 1 or a bias that starts at 0 hides a kernel that drops it, and one that
starts as the identity a kernel that looks at the diagonal. Scale and sign stay as the reference
made them; so do the zeros of parameters that are frozen and the values of buffers, which mean what
they are.
"""

import math
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from typing import Final

import torch
from torch import nn

from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.tensors.tensor_parts import generator_of_stream

_SPREAD: Final = 0.5
"""A value v becomes one between 0.5 v and 1.5 v: far outside any tolerance, same magnitude."""

_ZERO_VECTOR_DEVIATION: Final = 0.2
"""Standard deviation of what was a zero bias: seen beside activations of magnitude 1."""

_STATE_STREAM: Final = 0x5851_F42D_4C95_7F2D
"""Tells the seed of parameters from that of inputs."""

_RUNNING_STATISTICS: Final = ("running_mean", "running_var")
"""Buffers that training would have changed; all others are constants of the reference."""
_VARIANCE: Final = "running_var"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRule:
    """How one tensor of the module's state is drawn anew."""

    path: str
    base: torch.Tensor
    """As the reference made it."""
    is_fixed: bool
    """Not drawn anew: integers, masks, tables."""
    is_free: bool = False
    """Of any value: neither fixed nor frozen, and finite."""
    keeps_sign: bool = False
    """A variance, which is never negative."""
    is_zero: bool = False
    """All of `base` is zero."""
    zero_deviation: float = 0.0
    """Standard deviation of the new values where `base` is zero; 0: zeros stay."""


def parameter_rules(model: nn.Module, frozen: Container[str] = ()) -> tuple[ParameterRule, ...]:
    """Return the rules for the parameters, then the buffers, of `model`.

    Single zeros among other values stay (`dense`).

    Args:
        model: The reference.
        frozen: Paths of parameters that are not to be trained.
    """
    return tuple(_rules(model, frozen))


def fixed(rule: ParameterRule) -> ParameterRule:
    """Return a rule by which a tensor stays as it is."""
    return ParameterRule(path=rule.path, base=rule.base, is_fixed=True)


def dense(rule: ParameterRule) -> ParameterRule:
    """Return a rule by which zeros of what may be of any value get values, too."""
    if not rule.is_free or rule.zero_deviation or bool(computable(rule.base).all()):
        return rule
    return replace(rule, zero_deviation=_zero_deviation(rule.base))


def new_parameters(rules: tuple[ParameterRule, ...], seed: int) -> dict[str, torch.Tensor]:
    """Return new values by path. The same seed gives the same values on the same device."""
    # Not the seed itself: inputs start from it, and parameters must not repeat their values.
    device = rules[0].base.device if rules else torch.device("cpu")
    generator = generator_of_stream(_STATE_STREAM, seed, device)
    return {rule.path: _new_values(rule, generator) for rule in rules}


def _rules(model: nn.Module, frozen: Container[str]) -> Iterator[ParameterRule]:
    for path, parameter in model.named_parameters():
        is_fixed = not parameter.is_floating_point()
        yield _rule(path, parameter.detach(), is_fixed=is_fixed, is_frozen=path in frozen)
    for path, buffer in model.named_buffers():
        is_statistic = path.rpartition(".")[2] in _RUNNING_STATISTICS
        is_fixed = not (is_statistic and buffer.is_floating_point())
        yield _rule(path, buffer.detach(), is_fixed=is_fixed, is_frozen=False)


def _rule(path: str, base: torch.Tensor, *, is_fixed: bool, is_frozen: bool) -> ParameterRule:
    base = base.contiguous()
    if is_fixed or not base.numel():
        return ParameterRule(path=path, base=base, is_fixed=is_fixed)
    values = computable(base)
    is_zero = not bool(values.any())
    return ParameterRule(
        path=path,
        base=base,
        is_fixed=False,
        is_free=not is_frozen and bool(values.isfinite().all()),
        keeps_sign=path.endswith(_VARIANCE),
        is_zero=is_zero,
        zero_deviation=_zero_deviation(base) if is_zero else 0.0,
    )


def _zero_deviation(base: torch.Tensor) -> float:
    fan_in = base[0].numel() if base.ndim > 1 else 1
    return min(_ZERO_VECTOR_DEVIATION, 1.0 / math.sqrt(fan_in))


def _new_values(rule: ParameterRule, generator: torch.Generator) -> torch.Tensor:
    if rule.is_fixed:
        return rule.base.clone()
    shape, device = rule.base.shape, generator.device
    noise = None
    if rule.zero_deviation:
        noise = torch.randn(shape, generator=generator, dtype=torch.float32, device=device)
        noise.mul_(rule.zero_deviation)
        if rule.is_zero:
            return noise.to(rule.base.dtype)
    base = computable(rule.base)
    factor = torch.rand(shape, generator=generator, dtype=torch.float32, device=device)
    drawn = factor.mul_(2.0 * _SPREAD).add_(1.0 - _SPREAD).mul_(base)
    if noise is not None:
        drawn = torch.where(base == 0, noise, drawn)
    return drawn.to(rule.base.dtype)
