"""The speed of light: the time below which a device cannot do what a reference asks for.

Knows nothing of how FLOPs and bytes are counted.
"""

from kernel_foundry.domain.device import DeviceSpec, Peaks


def speed_of_light_ns(
    *, minimal_bytes: int, output_bytes: int, flops: int, device: DeviceSpec, peaks: Peaks
) -> float:
    """Return the largest of what memory, cache and arithmetic take at least.

    Inputs come from memory, since caches are emptied before each sample; of the outputs as much
    as the last-level cache holds may stay there when the call ends.
    Source: the roofline model (Williams, Waterman and Patterson 2009), for write-back caches.

    Args:
        minimal_bytes: Every input and parameter read once and every output written once.
        output_bytes: The outputs alone.
        flops: Floating-point operations of one call.
        device: With the size of its last-level cache.
        peaks: Its measured limits.
    """
    staying_bytes = min(output_bytes, device.cache_bytes)
    memory_s = (minimal_bytes - staying_bytes) / peaks.bandwidth_bytes_per_second
    cache_bandwidth = peaks.cache_bandwidth_bytes_per_second
    cache_s = minimal_bytes / cache_bandwidth if cache_bandwidth > 0 else 0.0
    return 1e9 * max(memory_s, cache_s, flops / peaks.flops_per_second)
