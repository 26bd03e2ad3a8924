"""Reads the raw metrics that ncu prints as comma-separated values.

What they mean is in `profiler.py`.
"""

import csv
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

TIME: Final = "gpu__time_duration.sum"
MEMORY_RATE: Final = "dram__bytes.sum.per_second"
MEMORY_SHARE: Final = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
COMPUTE_SHARE: Final = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
FMA_PIPE: Final = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"
TENSOR_PIPE: Final = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
ACHIEVED_OCCUPANCY: Final = "sm__warps_active.avg.pct_of_peak_sustained_active"
POSSIBLE_OCCUPANCY: Final = "sm__maximum_warps_per_active_cycle_pct"
CONFLICTS: Final = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
SHARED_WAVEFRONTS: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
LOADED_PER_SECTOR: Final = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
STORED_PER_SECTOR: Final = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"
_STALL: Final = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_STALLED: Final = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
STALLS: Final = (
    *("barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle"),
    *("long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc"),
    *("no_instruction", "not_selected", "short_scoreboard", "sleeping", "tex_throttle", "wait"),
)
METRICS: Final = (
    *(TIME, MEMORY_RATE, MEMORY_SHARE, COMPUTE_SHARE, FMA_PIPE, TENSOR_PIPE, ACHIEVED_OCCUPANCY),
    *(POSSIBLE_OCCUPANCY, CONFLICTS, SHARED_WAVEFRONTS, LOADED_PER_SECTOR, STORED_PER_SECTOR),
    *(_STALL.format(reason) for reason in STALLS),
)
"""What is asked for."""

_MAX_KERNELS: Final = 1000
_FIRST_COLUMN: Final = "ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProfile:
    """One launch."""

    kernel: str
    metrics: Mapping[str, float]
    """Those that the device has, by name, in base units."""

    @property
    def time_ns(self) -> float:
        """Time on the device; 0 when not told."""
        return self.metrics.get(TIME, 0.0)

    @property
    def stalls(self) -> tuple[tuple[str, float], ...]:
        """Reasons why warps waited, with their share of all waiting, the largest first."""
        found = {
            match[1]: value
            for name, value in self.metrics.items()
            if (match := _STALLED.fullmatch(name)) and match[1] != "selected" and value > 0
        }
        total = sum(found.values())
        shares = ((reason, value / total) for reason, value in found.items())
        return tuple(sorted(shares, key=lambda pair: -pair[1]))


def profiles(output: str) -> tuple[KernelProfile, ...]:
    """Return the launches in a tool's output, in order; empty when it holds no table."""
    return tuple(_profiles(output))


def _profiles(output: str) -> Iterator[KernelProfile]:
    start = output.find(f'"{_FIRST_COLUMN}",')
    if start < 0:
        return
    rows = csv.reader(output[start:].splitlines())
    try:
        names = next(rows)
        next(rows)  # units
        for index, row in enumerate(rows):
            if len(row) == len(names) and index < _MAX_KERNELS:
                yield _profile(dict(zip(names, row, strict=True)))
    except (csv.Error, StopIteration):
        return


def _profile(row: Mapping[str, str]) -> KernelProfile:
    metrics = {name: number for name, text in row.items() if (number := _number(text)) is not None}
    kernel = row.get("Kernel Name", "").partition("(")[0].strip()
    return KernelProfile(kernel=kernel or "kernel", metrics=metrics)


def _number(text: str) -> float | None:
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None  # n/a, a name, a shape
    return number if math.isfinite(number) else None
