"""The measurement of a model: times with and without the winners, and calls of exported files.

The process that runs the model writes it (`process.py`), `bench.py` reads it.
"""

import math
from dataclasses import dataclass
from enum import Enum

from kernel_foundry.domain.median import median_interval


class Form(Enum):
    """How a model is run."""

    EAGER = "eager"
    COMPILED = "compiled"
    """`torch.compile` with its defaults."""
    CONTIGUOUS = "compiled-contiguous"
    """`torch.compile` that lays no tensor out with channels last around convolutions."""
    GRAPH = "graph"
    """The eager call, replayed as a CUDA graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Wall times of a call of the model, in the order they were taken."""

    samples_ns: tuple[float, ...]
    """Each the mean of several calls in a row, until the device is done."""
    median_ns: float
    low_ns: float
    high_ns: float
    """The median is between them with 95 % confidence."""


def times_of(samples_ns: list[float]) -> Times:
    """Return the times of at least one sample."""
    median, (low, high) = median_interval(tuple(samples_ns))
    return Times(samples_ns=tuple(samples_ns), median_ns=median, low_ns=low, high_ns=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapCalls:
    """What an exported file ran while the swapped model was called once in one form."""

    kernel: int
    reference: int
    """Calls that fell back: there nothing was swapped."""
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """One form of the model, with the winners and without them."""

    form: Form
    plain: Times | None = None
    swapped: Times | None = None
    plain_error: float | None = None
    """Largest difference from the plain eager outputs, over their root mean square; infinite where
    one is not finite and the other is."""
    swapped_error: float | None = None
    calls: tuple[SwapCalls, ...] = ()
    """Of each file."""
    failure: str = ""
    """Why the model does not run in this form; then there are no times."""

    @property
    def speedup(self) -> float | None:
        """Time without the winners over time with them."""
        if self.plain is None or self.swapped is None:
            return None
        return self.plain.median_ns / self.swapped.median_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapResult:
    """One exported file in the model."""

    file: str
    paths: tuple[str, ...]
    """Of the modules that it replaced; "" is the whole model."""
    share: float
    """Of the plain model's time in modules, eager."""
    speedup: float
    """Of these modules alone, eager, in the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMeasurement:
    """A model with winners and without them."""

    device: str
    swaps: tuple[SwapResult, ...]
    forms: tuple[BenchResult, ...]
    tolerance: float

    @property
    def estimate(self) -> float:
        """Speed-up of the whole by Amdahl's law, of the eager model.

        Source: Amdahl 1967, with a part for each file: 1 / (1 − Σ share · (1 − 1 / speed-up)).
        """
        return 1 / (1 - sum(s.share * (1 - 1 / s.speedup) for s in self.swaps))

    def problems(self) -> tuple[str, ...]:
        """Return why the figures are not those of the winners; none where they are."""
        found = []
        for result in self.forms:
            name = result.form.value
            if result.failure:
                found.append(f"{name}: {result.failure}")
                continue
            error = math.inf if result.swapped_error is None else result.swapped_error
            if error > self.tolerance:
                found.append(
                    f"{name}: outputs with the winners differ by {error:.3g} of their root mean"
                    f" square, and {self.tolerance:.3g} is allowed"
                )
            for swap, calls in zip(self.swaps, result.calls, strict=True):
                if calls.reference or not calls.kernel:
                    why = "; ".join(calls.reasons) or "torch.compile traced the reference"
                    found.append(
                        f"{name}: {swap.file} fell back to the reference in {calls.reference} of"
                        f" {calls.reference + calls.kernel} calls: {why}"
                    )
        return tuple(found)
