"""PyTorch's own times for a workload, taken by the measuring loop that times candidates.

Eager and torch.compile run as KernelBench runs them: the module's mode, no gradients, fixed
threads. They rotate over the input sets of a draw. Knows nothing of candidates.
"""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from evaluator_svc.exchange import MeasurePlan
from evaluator_svc.judge.input_set import InputSet
from evaluator_svc.median import median_interval
from kernel_foundry.domain.evaluation import Baseline, StopReason, Timing
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry_native import _core as native

EAGER: Final = "eager"
COMPILE: Final = "torch.compile"

_COMPILE_WARMUP_CALLS: Final = 3
"""For each input set: the first compiles, the next may specialise once more."""


class CompileFailedError(Exception):
    """torch.compile cannot compile the reference or run the result; a warning, no refusal."""


def time_baseline(name: str, sets: Sequence[InputSet], plan: MeasurePlan) -> Baseline:
    """Return the time of one call, over the input sets in random order.

    Raises:
        CompileFailedError: torch.compile does not work for this reference.
        InvalidArgumentError: no baseline of that name.
    """
    if name not in _PREPARE:
        raise InvalidArgumentError(
            f"no baseline {name!r}; there are {', '.join(_PREPARE)}", field="names"
        )
    calls = _PREPARE[name](sets)

    def call(index: int) -> None:
        calls[index]()

    with torch.no_grad():
        measurement = native.measure_callable(
            call, _options(plan, len(sets)), flush_bytes=plan.flush_bytes
        )
    return Baseline(name=name, timing=_timing(measurement, plan))


def compile_seconds(sets: Sequence[InputSet]) -> float:
    """Compile the reference ahead of timing and return how long that took.

    Raises:
        CompileFailedError: as `time_baseline`.
    """
    start = time.monotonic()
    _compiled_calls(sets)
    return time.monotonic() - start


def _eager_calls(sets: Sequence[InputSet]) -> list[Callable[[], Any]]:
    return [_call(model, values) for model, values in (s.callable_model() for s in sets)]


def _compiled_calls(sets: Sequence[InputSet]) -> list[Callable[[], Any]]:
    # A pool of compiler processes would outlive the compilation and disturb every timing.
    torch._inductor.config.compile_threads = 1
    calls = []
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch about its own parts
            for input_set in sets:
                model, values = input_set.callable_model()
                # The sets share code and shapes, so only the first one compiles.
                calls.append(_call(torch.compile(model, dynamic=False), values))
            for call in calls * _COMPILE_WARMUP_CALLS:
                call()
    except Exception as error:  # dynamo, inductor and the C++ compiler raise anything
        first = str(error).strip().partition("\n")[0]
        raise CompileFailedError(f"torch.compile: {type(error).__name__}: {first}") from error
    return calls


def _call(model: Callable[..., Any], values: Sequence[Any]) -> Callable[[], Any]:
    return lambda: model(*values)


_PREPARE: Final[Mapping[str, Callable[[Sequence[InputSet]], list[Callable[[], Any]]]]] = {
    EAGER: _eager_calls,
    COMPILE: _compiled_calls,
}


def _options(plan: MeasurePlan, set_count: int) -> native.MeasureOptions:
    return native.MeasureOptions(
        warmup_calls=plan.warmup_calls,
        min_samples=plan.min_samples,
        max_samples=plan.max_samples,
        max_seconds=plan.seconds,
        target_half_width=plan.target_half_width,
        set_count=set_count,
        order_seed=plan.order_seed,
        is_cold=plan.flush_bytes > 0,
        stop_above_ns=plan.stop_above_ns,
    )


def _timing(measurement: native.Measurement, plan: MeasurePlan) -> Timing:
    samples_ns = tuple(measurement.samples_ns)
    median_ns, interval_ns = median_interval(samples_ns)
    return Timing(
        samples_ns=samples_ns,
        median_ns=median_ns,
        ci95_ns=interval_ns,
        stop_reason=StopReason(measurement.stop_reason),
        is_cold=plan.flush_bytes > 0,
        warmup_count=measurement.warmup_count,
        discarded_count=measurement.discarded_count,
    )
