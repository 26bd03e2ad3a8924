"""Native comparison of tensors in a GPU's memory, against a copy of as many bytes.

A verdict compares every element, so that this is the least that a check of a large result costs.
Best of several calls each, for 2³⁰ bytes on a side: a plain copy, the comparison of equal tensors,
of tensors that differ in every element (the longest way), and of bytes alone.

Run: python -m benchmarks.device_compare [--bytes 1073741824] [--rounds 5] [--out FILE]
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, Final

from benchmarks.result_file import out_option, write_host_result
from kernel_foundry_native import device_kind

NAME: Final = "device_compare"


def best_ms(work: Callable[[], object], rounds: int) -> float:
    """Return the shortest time of `work`, which returns when the device is done."""

    def timed() -> float:
        start_s = time.perf_counter()
        work()
        return 1e3 * (time.perf_counter() - start_s)

    return min(timed() for _ in range(rounds))


def measure(size_bytes: int, rounds: int) -> dict[str, Any]:
    """Return milliseconds by what was done."""
    device: Any = device_kind("cuda").open_device()
    kept = [device.allocate(size_bytes) for _ in range(2)]
    left, right = (buffer.address for buffer in kept)

    def compare() -> object:
        return device.compare(
            actual=left, expected=right, dtype="float32", count=size_bytes // 4, rtol=1e-5,
            atol=1e-5,
        )  # fmt: skip

    device.fill(right, size_bytes, 0x3F)
    copy_ms = best_ms(lambda: device.copy(left, right, size_bytes), rounds)
    equal_ms = best_ms(compare, rounds)
    same_bytes_ms = best_ms(lambda: device.same_bytes(left, right, size_bytes), rounds)
    device.fill(left, size_bytes, 0x3E)
    different_ms = best_ms(compare, rounds)
    return {
        "device": device.name,
        "driver": device.driver_version,
        "bytes": size_bytes,
        "copy_ms": copy_ms,
        "compare_equal_ms": equal_ms,
        "compare_different_ms": different_ms,
        "same_bytes_ms": same_bytes_ms,
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=1 << 30, help="of one tensor")
    parser.add_argument("--rounds", type=int, default=5, help="calls, of which the best counts")
    out_option(parser, NAME)
    arguments = parser.parse_args()
    measured = measure(arguments.bytes, arguments.rounds)
    write_host_result(arguments.out, NAME, measured)
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
