"""Times and amounts of memory as prompts print them."""


def time_text(time_ns: float) -> str:
    """Return a time in milliseconds."""
    return f"{time_ns / 1e6:.3f} ms"


def bytes_text(count: int) -> str:
    """Return an amount of memory in the largest unit that gives a number of at least 1."""
    if count >= 1 << 30:
        return f"{count / (1 << 30):.1f} GiB"
    return f"{count / (1 << 20):.1f} MiB" if count >= 1 << 20 else f"{count / (1 << 10):.1f} KiB"
