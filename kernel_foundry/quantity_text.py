"""Quantities as people read them: counts with their noun, times in the unit that fits."""

import math


def counted(count: int, noun: str) -> str:
    """Return "1 candidate" or "3 candidates"; `noun` takes an s in the plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def uncertainty_text(lower: float, middle: float, upper: float) -> str:
    """Return half an interval's width over its middle: "±0.8 %"; "±<0.1 %" and "±>100 %" end it."""
    half = 50 * (upper - lower) / middle if middle else math.inf
    if not half <= 100:
        return "±>100 %"
    if half < 0.1:
        return "±<0.1 %"
    return f"±{half:.2g} %" if half < 10 else f"±{half:.0f} %"


def time_text(time_ns: float) -> str:
    """Return "1.25 ms" from a millisecond on, "12.5 µs" below."""
    return f"{time_ns / 1e6:.3g} ms" if time_ns >= 1e6 else f"{time_ns / 1e3:.3g} µs"
