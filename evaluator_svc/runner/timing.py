"""One measurement of a candidate by the native loop, with outputs of a few calls kept.

Knows nothing of verdicts.
"""

from typing import Any

from evaluator_svc.exchange import KeptOutput
from evaluator_svc.messages import Timed, TimeRequest
from evaluator_svc.runner.input_pool import InputPool
from evaluator_svc.runner.replay import Replay
from kernel_foundry.domain.evaluation import StopReason


def take_times(replay: Replay, pool: InputPool, request: TimeRequest) -> Timed:
    """Measure; kept outputs go into the output slots 0, 1, … of their seed's shared buffer."""
    from kernel_foundry_native import _core  # noqa: PLC0415  loaded only once locked in

    outputs = [
        (index, slot)
        for slot in pool.shared.outputs
        if (index := replay.buffer_index(slot.name)) is not None
    ]
    # Which seed a kept call will have had is known only afterwards, so it is kept aside first.
    aside = [
        [pool.spare(slot.size_bytes) for _, slot in outputs] for _ in range(request.keep_count)
    ]
    plan = request.plan
    options = _core.MeasureOptions(
        warmup_calls=plan.warmup_calls,
        min_samples=plan.min_samples,
        max_samples=plan.max_samples,
        max_seconds=plan.seconds,
        target_half_width=plan.target_half_width,
        flush_bytes=plan.flush_bytes,
        poison=[(index, slot.size_bytes) for index, slot in outputs] if request.poison else [],
        set_order_seed=plan.order_seed,
        set_count=pool.set_count,
        keep_count=request.keep_count,
        keep_into=[[int(buffer.address) for buffer in kept] for kept in aside],
        stop_above_ns=plan.stop_above_ns,
    )
    measurement = replay.native.measure(options)
    kept = []
    for position, (_call, index) in enumerate(measurement.kept):
        seed = pool.seed_of(index)
        for buffer, (_, slot) in zip(aside[position], outputs, strict=True):
            buffer.copy_to(pool.shared.address(seed, slot, position), slot.size_bytes)
        kept.append(KeptOutput(seed=seed, slot=position))
    _release(aside)
    return Timed(
        samples_ns=tuple(float(sample) for sample in measurement.samples_ns),
        device_ns=tuple(float(sample) for sample in measurement.device_ns),
        stop_reason=StopReason(measurement.stop_reason),
        warmup_count=measurement.warmup_count,
        discarded_count=measurement.discarded_count,
        kept=tuple(kept),
    )


def _release(aside: list[list[Any]]) -> None:
    for buffers in aside:
        for buffer in buffers:
            buffer.release()
