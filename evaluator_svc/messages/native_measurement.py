"""Converts a `MeasurementSettings` to options of the native measuring loop, and its clocks back."""

from typing import Any

from evaluator_svc.messages.measurement import MeasurementSettings
from kernel_foundry.domain.evaluation import ClockBlock


def measure_options(
    options_type: Any,
    settings: MeasurementSettings,
    *,
    set_count: int,
    keep_count: int = 0,
    call_draws: int = -1,
) -> Any:
    """Return the loop's options.

    Args:
        options_type: The native module's `MeasureOptions`.
        settings: How the measurement is taken.
        set_count: Sets of buffers to choose from.
        keep_count: Timed calls whose outputs are kept.
        call_draws: Descriptor of what decides about calls; -1: the system does.
    """
    return options_type(
        warmup_calls=settings.warmup_calls,
        min_samples=settings.min_samples,
        max_samples=settings.max_samples,
        max_seconds=settings.seconds,
        target_half_width=settings.target_half_width,
        set_count=set_count,
        draws=call_draws,
        is_cold=settings.flush_bytes > 0,
        keep_count=keep_count,
        stop_above_ns=settings.stop_above_ns,
        stop_factor=settings.stop_factor,
        min_seconds=settings.min_seconds,
    )


def clock_blocks(measurement: Any) -> tuple[ClockBlock, ...]:
    """Return the clocks of a native measurement, block by block."""
    return tuple(
        ClockBlock(
            sample_count=sample_count,
            compute_mhz_before=before_mhz,
            compute_mhz_after=after_mhz,
            memory_mhz=memory_mhz,
            throttle_reasons=tuple(reasons),
        )
        for sample_count, before_mhz, after_mhz, memory_mhz, reasons in measurement.clocks
    )
