"""Reads the raw metrics that ncu prints as comma-separated values: a row for each launch.

What they mean is in `profile_findings.py` and `pipeline/profile/counted_kernels.py`.
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
CACHE_SHARE: Final = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
FIRST_CACHE_SHARE: Final = "l1tex__throughput.avg.pct_of_peak_sustained_active"
ALU_PIPE: Final = "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active"
LSU_PIPE: Final = "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active"
SPECIAL_PIPE: Final = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"
ISSUE_SLOTS: Final = "smsp__issue_active.avg.pct_of_peak_sustained_active"
BYTES_READ: Final = "dram__bytes_read.sum"
BYTES_WRITTEN: Final = "dram__bytes_write.sum"
REGISTERS: Final = "launch__registers_per_thread"
STATIC_SHARED: Final = "launch__shared_mem_per_block_static"
DYNAMIC_SHARED: Final = "launch__shared_mem_per_block_dynamic"
LIMITS: Final = {
    "launch__occupancy_limit_shared_mem": "shared memory",
    "launch__occupancy_limit_registers": "registers",
    "launch__occupancy_limit_warps": "the size of the work-group",
    "launch__occupancy_limit_blocks": "the number of work-groups",
}
"""Work-groups that fit a multiprocessor by each resource alone; given with every report."""
ACHIEVED_OCCUPANCY: Final = "sm__warps_active.avg.pct_of_peak_sustained_active"
POSSIBLE_OCCUPANCY: Final = "sm__maximum_warps_per_active_cycle_pct"
CONFLICTS: Final = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
SHARED_WAVEFRONTS: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
LOADED_PER_SECTOR: Final = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
STORED_PER_SECTOR: Final = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"
LOADED_SECTORS: Final = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
STORED_SECTORS: Final = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
"""Metrics of single threads' accesses, without bulk copies."""
CACHE_SECTORS: Final = "lts__t_sectors.sum"
"""All that the last-level cache moves."""
_STALL: Final = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_STALLED: Final = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
STALLS: Final = (
    *("barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle"),
    *("long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc"),
    *("no_instruction", "not_selected", "short_scoreboard", "sleeping", "tex_throttle", "wait"),
)
SAMPLES: Final = "group:smsp__pcsamp_warp_stall_reasons"
"""Where warps were found now and then, by instruction."""
SAMPLE: Final = "smsp__pcsamp_warps_issue_stalled_"
"""One reason of these, such as `barrier` behind it."""
_SAMPLED: Final = (
    *("barrier", "long_scoreboard", "short_scoreboard", "mio_throttle", "lg_throttle", "wait"),
    *("math_pipe_throttle", "warpgroup_arrive", "membar", "not_selected", "selected"),
    *("branch_resolving", "no_instructions", "drain", "imc_miss", "tex_throttle", "sleeping"),
)
METRICS: Final = (
    *(TIME, MEMORY_RATE, MEMORY_SHARE, COMPUTE_SHARE, FMA_PIPE, TENSOR_PIPE, ACHIEVED_OCCUPANCY),
    *(POSSIBLE_OCCUPANCY, CONFLICTS, SHARED_WAVEFRONTS, LOADED_PER_SECTOR, STORED_PER_SECTOR),
    *(LOADED_SECTORS, STORED_SECTORS, CACHE_SECTORS),
    *(CACHE_SHARE, FIRST_CACHE_SHARE, ALU_PIPE, LSU_PIPE, SPECIAL_PIPE, ISSUE_SLOTS),
    *(BYTES_READ, BYTES_WRITTEN),
    *(_STALL.format(reason) for reason in STALLS),
    SAMPLES,
    *(SAMPLE + reason for reason in _SAMPLED),
)
"""What is asked for."""

_MAX_LAUNCHES: Final = 1000
_FIRST_COLUMN: Final = "ID"
_TEMPLATE: Final = re.compile(r"[<(]")
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchMetrics:
    """One launch."""

    kernel: str
    metrics: Mapping[str, float]
    """Those that the device has, by name, in base units."""

    @property
    def time_ns(self) -> float:
        """Time on the device; 0 when not told."""
        return self.metrics.get(TIME, 0.0)

    @property
    def busiest_share(self) -> float:
        """The largest share of its peak among memory, multiprocessors and tensor pipe."""
        return max(self.share(MEMORY_SHARE), self.share(COMPUTE_SHARE), self.share(TENSOR_PIPE))

    def share(self, name: str) -> float:
        """Return a metric in percent as a share, from 0; 0 when not told."""
        return max(self.metrics.get(name, 0.0), 0.0) / 100

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


def launches(output: str) -> tuple[LaunchMetrics, ...]:
    """Return the launches in a tool's output, in order; empty when it holds no table."""
    return tuple(_launches(output))


def _launches(output: str) -> Iterator[LaunchMetrics]:
    start = output.find(f'"{_FIRST_COLUMN}",')
    if start < 0:
        return
    rows = csv.reader(output[start:].splitlines())
    try:
        names = next(rows)
        next(rows)  # units
        for index, row in enumerate(rows):
            if len(row) == len(names) and index < _MAX_LAUNCHES:
                yield _launch(dict(zip(names, row, strict=True)))
    except (csv.Error, StopIteration):
        return


def _launch(row: Mapping[str, str]) -> LaunchMetrics:
    metrics = {name: number for name, text in row.items() if (number := _number(text)) is not None}
    return LaunchMetrics(kernel=kernel_name(row.get("Kernel Name", "")), metrics=metrics)


def kernel_name(told: str) -> str:
    """Return a kernel's name without result, template arguments and parameters."""
    name = _TEMPLATE.split(told.strip().removeprefix("void "), maxsplit=1)[0].strip()
    return "".join(c for c in name if c.isprintable())[:_LONGEST_NAME] or "kernel"


def _number(text: str) -> float | None:
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None  # n/a, a name, a shape
    return number if math.isfinite(number) else None
