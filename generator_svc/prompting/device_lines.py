"""The device as prompts print it: what it is, its compiler's target, its measured peaks."""

from collections.abc import Mapping
from typing import Final

from generator_svc.markdown import clip
from generator_svc.prompting.units import bytes_text
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.language import Language

_MAX_LINE_CHARS: Final = 300


def device_lines(device: DeviceSpec, words: Mapping[str, str]) -> tuple[str, ...]:
    """Return the queried and measured facts of `device`.

    `words`: the language's `near_memory`, `unit`, `group`, `sub_group` and `item`.
    """
    near, unit, group = words["near_memory"], words["unit"], words["group"]
    lines = [
        f"{device.name} ({device.vendor}, {device.architecture})",
        *target_lines(device),
        f"{device.compute_units} {unit}s, preferred {words['sub_group']} size "
        f"{device.sub_group_size}, {group}s of up to {device.max_block}",
        f"{bytes_text(device.shared_bytes)} {near} memory a {group}, last-level cache "
        f"{bytes_text(device.cache_bytes)}, memory {bytes_text(device.memory_bytes)}",
    ]
    if device.unit_limits is not None:
        limits = device.unit_limits
        lines.append(
            f"a {unit} holds {limits.registers} registers, {bytes_text(limits.shared_bytes)} "
            f"{near} memory, {limits.work_items} {words['item']}s, {limits.groups} {group}s"
        )
    if device.peaks is not None:
        peaks = device.peaks
        lines.append(
            f"measured: {_bandwidths(peaks)}, "
            f"{peaks.flops_per_second / 1e9:.0f} GFLOP/s float32 FMA, "
            + "".join(
                f"{rate.flops_per_second / 1e12:.0f} TFLOP/s {rate.format} on matrix units, "
                for rate in peaks.matrix_rates
            )
            + f"{peaks.launch_ns / 1e3:.1f} us for an empty launch"
        )
    return tuple(clip(line, _MAX_LINE_CHARS) for line in lines)


def _bandwidths(peaks: Peaks) -> str:
    """Each kind of traffic by a name of its own: they differ by a tenth.

    A copy within a small cache is so short that its start decides; then it tells nothing.
    """
    copy, read = peaks.bandwidth_bytes_per_second, peaks.read_bandwidth_bytes_per_second
    texts = [f"{copy / 1e9:.1f} GB/s to copy in memory (bytes read and written)"]
    if read > copy:
        texts.append(f"{read / 1e9:.1f} GB/s to read it alone")
    if (cache := peaks.cache_bandwidth_bytes_per_second) > copy:
        texts.append(f"{cache / 1e9:.1f} GB/s to copy in cache")
    return ", ".join(texts)


def compiler_target(architecture: str) -> str:
    """Return NVRTC's target: from compute capability 9.0 on it has all features of the device."""
    digits = architecture.removeprefix("sm_")
    return f"{architecture}a" if digits.isdecimal() and int(digits) >= 90 else architecture


_TARGETS: Final = (
    (
        100,
        110,
        "`tcgen05` with tensor memory, clusters and `cp.async.bulk` are there, `wgmma` is not",
    ),
    (90, 90, "`wgmma`, `setmaxnreg`, `mbarrier`, clusters and `cp.async.bulk` are there"),
    (
        120,
        129,
        "`mma.sync`, `mbarrier` and `cp.async.bulk` are there, `wgmma` and `tcgen05` are not",
    ),
    (80, 89, "`mma.sync` and `cp.async` are there, `wgmma`, clusters and `cp.async.bulk` are not"),
    (70, 79, "`mma.sync` of float16 is there, `cp.async` and bfloat16 products are not"),
)
"""By compute capability, from and up to: what sets the generation apart."""


def target_lines(device: DeviceSpec) -> tuple[str, ...]:
    """Return the compiler's exact target and what it has; nothing for SYCL."""
    digits = device.architecture.removeprefix("sm_").rstrip("af")
    if device.language is not Language.CUDA or not digits.isdecimal():
        return ()
    target = compiler_target(device.architecture)
    for first, last, text in _TARGETS:
        if first <= int(digits) <= last:
            maps = "; a plan makes no tensor maps (TMA descriptors)" if first >= 90 else ""
            return (f"the compiler's target is {target}: {text}{maps}",)
    return (f"the compiler's target is {target}",)
