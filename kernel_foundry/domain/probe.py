"""Probes: what an evaluator's self-test tried on its own host, and how it went."""

from dataclasses import dataclass

from kernel_foundry.domain.finding import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One thing that was tried."""

    name: str
    """Area and subject: "sandbox.runner.fork", "device.copy", "timer.proportional"."""
    passed: bool
    detail: str
    """The result in one sentence."""
    figures: tuple[Figure, ...] = ()
