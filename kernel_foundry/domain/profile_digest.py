"""A profile in at most 25 lines of plain text, for prompts, reports and terminals."""

from collections.abc import Iterator
from typing import Final

from kernel_foundry.domain.profile import HotLine, KernelProfile, Profile, Share
from kernel_foundry.quantity_text import time_text

MOST_DIGEST_LINES: Final = 25
LONGEST_DIGEST_LINE: Final = 240
_MOST_KERNELS: Final = 4
"""Told in detail; the others are named in one line."""
_MOST_OTHERS: Final = 4
_LONGEST_NAME: Final = 60
_LONGEST_SOURCE: Final = 90
_LEAST_SHARE: Final = 0.01
"""Shares that round to less are left out."""
_LINE_BYTES: Final = 64
"""Moved by each miss of a processor's last-level cache."""


def digest_lines(profile: Profile, device_code: str = "") -> tuple[str, ...]:
    """Return the findings of a profile in words.

    Args:
        profile: Of a candidate; from anybody.
        device_code: The candidate's, whose hottest lines are quoted; empty: lines by number alone.
    """
    code = device_code.splitlines()
    lines = [
        _head(profile),
        *_counters(profile),
        *(line for kernel in profile.kernels[:_MOST_KERNELS] for line in _kernel(profile, kernel)),
        *_others(profile.kernels[_MOST_KERNELS:]),
        *(_hot_line(line, code) for line in profile.lines if line.share >= _LEAST_SHARE),
    ]
    return tuple(_plain(line, LONGEST_DIGEST_LINE) for line in lines[:MOST_DIGEST_LINES])


def _head(profile: Profile) -> str:
    head = f"{_plain(profile.workload, _LONGEST_NAME)}, {time_text(profile.call_ns)} a call"
    if profile.tool:
        head += f", by {_plain(profile.tool, _LONGEST_NAME)}"
    head += f"; compulsory bytes: {_bytes(profile.minimal_bytes)}"
    moved = [k.moved_bytes * k.launches for k in profile.kernels if k.moved_bytes is not None]
    if moved:
        head += f"; moved: {_bytes(sum(moved))}"
        if profile.minimal_bytes > 0:
            head += f" ({sum(moved) / profile.minimal_bytes:.2g}x)"
    return head


def _counters(profile: Profile) -> Iterator[str]:
    if profile.reason:
        yield f"no hardware counters: {profile.reason}"
    counts = {figure.name: figure.value for figure in profile.counters}
    if not counts:
        return
    texts = [f"{name} {value:.3g}" for name, value in counts.items()]
    if counts.get("cycles", 0.0) > 0 and "instructions" in counts:
        texts.append(f"{counts['instructions'] / counts['cycles']:.2f} instructions a cycle")
    if "llc_misses" in counts:
        texts.append(f"{_bytes(_LINE_BYTES * counts['llc_misses'])} by misses of the last cache")
    yield "in a call with warm caches: " + ", ".join(texts)


def _kernel(profile: Profile, kernel: KernelProfile) -> Iterator[str]:
    """One to three lines: time and use, waiting, occupancy."""
    total_ns = sum(k.time_ns for k in profile.kernels)
    text = _name(kernel)
    if kernel.time_ns > 0:
        text += f": {time_text(kernel.time_ns)}"
        text += f" in {kernel.launches} launches" if kernel.launches > 1 else ""
        text += f" ({_percent(kernel.time_ns / total_ns)})" if len(profile.kernels) > 1 else ""
    if kernel.units:
        text += f"; busy: {_shares(kernel.units)}"
    if kernel.instructions:
        text += f"; instructions: {_shares(kernel.instructions)}"
    yield text
    if kernel.stalls:
        yield f"  warps wait for: {_shares(kernel.stalls)}"
    if kernel.possible_occupancy is not None or kernel.registers:
        yield f"  {_occupancy(kernel)}"


def _occupancy(kernel: KernelProfile) -> str:
    possible, parts = kernel.possible_occupancy, []
    if kernel.occupancy is not None:
        parts.append(f"occupancy {_percent(kernel.occupancy)} reached")
    if possible is not None:
        limit = f", limited by {kernel.occupancy_limit}" if kernel.occupancy_limit else ""
        word = "" if parts else "occupancy "
        parts.append(f"{word}{_percent(possible)} possible{limit}")
    if kernel.registers:
        parts.append(f"{kernel.registers} registers")
    if kernel.shared_bytes:
        parts.append(f"{_bytes(kernel.shared_bytes)} shared memory")
    return "; ".join(parts)


def _others(kernels: tuple[KernelProfile, ...]) -> Iterator[str]:
    if kernels:
        named = ", ".join(f"{_name(k)} {time_text(k.time_ns)}" for k in kernels[:_MOST_OTHERS])
        yield f"others: {named}"


def _hot_line(hot: HotLine, source: list[str]) -> str:
    where = f"{_plain(hot.file, _LONGEST_NAME)}:{hot.line}" if hot.file else f"line {hot.line}"
    text = f"{where}: {_percent(hot.share)} of the samples"
    text += f", mostly {_plain(hot.stall, _LONGEST_NAME)}" if hot.stall else ""
    if not hot.file and 1 <= hot.line <= len(source):
        code = " ".join(source[hot.line - 1].split()).replace("`", "'")
        text += f": `{_plain(code, _LONGEST_SOURCE)}`"
    return text


def _name(kernel: KernelProfile) -> str:
    name = _plain(kernel.kernel, _LONGEST_NAME)
    return f"{name} (library)" if kernel.is_library else name


def _shares(shares: tuple[Share, ...]) -> str:
    told = [s for s in shares if s.share >= _LEAST_SHARE]
    return ", ".join(f"{_plain(s.name, _LONGEST_NAME)} {_percent(s.share)}" for s in told) or "–"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def _plain(text: str, longest: int) -> str:
    kept = "".join(c if c.isprintable() else " " for c in text[: longest + 1])
    return kept if len(kept) <= longest else f"{kept[: longest - 1]}…"
