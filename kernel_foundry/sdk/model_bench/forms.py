"""Runs a model eagerly, compiled, or as a CUDA graph; times several of them in turns."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import nn

from kernel_foundry.sdk.model_bench.measurement import Form

_SAMPLE_NS: Final = 5e6
"""A sample has calls for about this long, so that waiting for the device at its end is small."""
_MOST_CALLS: Final = 1000
_WARM_UP_CALLS: Final = 3
_COMPILER_OPTIONS: Final[dict[Form, dict[str, Any] | None]] = {
    Form.COMPILED: None,
    Form.CONTIGUOUS: {"layout_optimization": False},
}

Call = Callable[[], Any]


def forms_on(device: torch.device) -> tuple[Form, ...]:
    """Return the forms that a device has."""
    return tuple(f for f in Form if f is not Form.GRAPH or device.type == "cuda")


def usual_forms(device: torch.device) -> tuple[Form, ...]:
    """Return the forms that are measured on a device unless others are asked for."""
    return tuple(form for form in forms_on(device) if form is not Form.CONTIGUOUS)


def call_of(form: Form, module: nn.Module, inputs: tuple[Any, ...]) -> Call:
    """Return a call of a module in a form, warm, without gradients."""
    run: Callable[..., Any] = module
    if form in _COMPILER_OPTIONS:
        run = torch.compile(module, options=_COMPILER_OPTIONS[form])

    def call() -> Any:
        with torch.no_grad():
            return run(*inputs)

    if form is not Form.GRAPH:
        for _ in range(_WARM_UP_CALLS):
            call()
        return call
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP_CALLS):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = call()

    def replay() -> Any:
        graph.replay()
        return outputs

    return replay


def interleaved_samples(
    calls: Sequence[Call], device: torch.device, samples: int
) -> list[list[float]]:
    """Return samples of a call's wall time in ns, of each of several calls.

    They take turns, and the order is turned round each time, so that a slow moment and what ran
    before meet all of them.
    """
    counts = [_calls_in_a_sample(call, device) for call in calls]
    found: list[list[float]] = [[] for _ in calls]
    order = list(range(len(calls)))
    for _ in range(samples):
        for index in order:
            found[index].append(_sample(calls[index], device, counts[index]))
        order.reverse()
    return found


def _calls_in_a_sample(call: Call, device: torch.device) -> int:
    fastest = min(_sample(call, device, 1) for _ in range(_WARM_UP_CALLS))
    return max(1, min(_MOST_CALLS, round(_SAMPLE_NS / fastest)))


def _sample(call: Call, device: torch.device, count: int) -> float:
    _wait(device)
    started = time.perf_counter_ns()
    for _ in range(count):
        call()
    _wait(device)
    return (time.perf_counter_ns() - started) / count


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
