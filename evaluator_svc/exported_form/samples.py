"""Times of calls, as an exported file's trial takes them."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import torch

from kernel_foundry.domain.median import median_interval

_SECONDS: Final = 0.4
"""Most that the samples of one figure take."""
_LEAST_SAMPLES: Final = 20
_MOST_SAMPLES: Final = 500
_WARM_UP: Final = 5
_BATCH: Final = 20
"""Calls in one captured graph, at most: its own start is divided among them."""
_BATCH_NS: Final = 2e5
"""How long such a graph runs about. Longer ones would heat the device until it lowers its clock,
which the judge's calls, with other work between them, do not."""


def warmed_up(run: Callable[[], object]) -> None:
    """Run a call a few times."""
    for _ in range(_WARM_UP):
        run()


def cpu_samples(run: Callable[[], object]) -> list[float]:
    """Return times in nanoseconds of a call that is over when it returns."""
    samples: list[float] = []
    end = time.monotonic() + _SECONDS
    while len(samples) < _MOST_SAMPLES and (
        time.monotonic() < end or len(samples) < _LEAST_SAMPLES
    ):
        start = time.perf_counter_ns()
        run()
        samples.append(float(time.perf_counter_ns() - start))
    return samples


def gpu_samples(run: Callable[[], object]) -> list[float]:
    """Return times in nanoseconds of a call until the device is done."""
    samples: list[float] = []
    torch.cuda.synchronize()
    for _ in range(_LEAST_SAMPLES):
        start = time.perf_counter_ns()
        for _ in range(_BATCH):
            run()
        torch.cuda.synchronize()
        samples.append((time.perf_counter_ns() - start) / _BATCH)
    return samples


def host_samples(run: Callable[[], object]) -> list[float]:
    """Return times of a call until it returns.

    Fewer calls in a row than the device's queue takes.
    """
    samples: list[float] = []
    for _ in range(_LEAST_SAMPLES):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(_BATCH):
            run()
        samples.append((time.perf_counter_ns() - start) / _BATCH)
    torch.cuda.synchronize()
    return samples


def graph_samples(run: Callable[[], object], inputs: Sequence[torch.Tensor]) -> list[float]:
    """Return times of calls in graphs; inputs are written before each, as the judge draws anew."""
    kept = [tensor.clone() for tensor in inputs]
    count = max(1, min(_BATCH, round(_BATCH_NS / _graph_ns(_graph(run, 1)))))
    graph = _graph(run, count)
    samples: list[float] = []
    for _ in range(2 * _LEAST_SAMPLES):
        for tensor, value in zip(inputs, kept, strict=True):
            tensor.copy_(value)
        samples.append(_graph_ns(graph) / count)
    return samples


def _graph(run: Callable[[], object], count: int) -> torch.cuda.CUDAGraph:
    """Calls in a row, replayed once before they are timed."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            run()
    graph.replay()
    return graph


def _graph_ns(graph: torch.cuda.CUDAGraph) -> float:
    begin, end = (_event() for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e6


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """Return the median of samples between the bounds of its 95 % interval."""
    median, (lower, upper) = median_interval(tuple(samples))
    return lower, median, upper
