"""Quantities as people read them: counts with their noun, times in the unit that fits."""


def counted(count: int, noun: str) -> str:
    """Return "1 candidate" or "3 candidates"; `noun` takes an s in the plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def time_text(time_ns: float) -> str:
    """Return "1.25 ms" from a millisecond on, "12.5 µs" below."""
    return f"{time_ns / 1e6:.3g} ms" if time_ns >= 1e6 else f"{time_ns / 1e3:.3g} µs"
