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
    outputs = [
        (index, slot)
        for slot in pool.shared.outputs
        if slot.size_bytes and (index := replay.buffer_index(slot.name)) is not None
    ]
    # Which seed a kept call will have had is known only afterwards, so it is kept aside first.
    aside = [
        [pool.spare(slot.size_bytes) for _, slot in outputs] for _ in range(request.keep_count)
    ]
    measurement = replay.native.measure(
        _options(replay, pool, request),
        flush_bytes=request.plan.flush_bytes,
        outputs=[(i, slot.size_bytes) for i, slot in outputs] if request.poison else [],
        keep_into=[[int(buffer.address) for buffer in kept] for kept in aside],
    )
    kept = []
    for position, (_call, index) in enumerate(measurement.kept):
        seed = pool.seed_of(index)
        for buffer, (_, slot) in zip(aside[position], outputs, strict=True):
            pool.keep(buffer, seed, slot, position)
        kept.append(KeptOutput(seed=seed, slot=position))
    return Timed(
        samples_ns=tuple(measurement.samples_ns),
        device_ns=tuple(measurement.device_ns),
        stop_reason=StopReason(measurement.stop_reason),
        warmup_count=measurement.warmup_count,
        discarded_count=measurement.discarded_count,
        kept=tuple(kept),
    )


def _options(replay: Replay, pool: InputPool, request: TimeRequest) -> Any:
    plan = request.plan
    return replay.module.MeasureOptions(
        warmup_calls=plan.warmup_calls,
        min_samples=plan.min_samples,
        max_samples=plan.max_samples,
        max_seconds=plan.seconds,
        target_half_width=plan.target_half_width,
        set_count=pool.set_count,
        order_seed=plan.order_seed,
        is_cold=plan.flush_bytes > 0,
        keep_count=request.keep_count,
        stop_above_ns=plan.stop_above_ns,
    )
