"""How fast a device computes what a task asks for, from its measured float32 peak.

Knows nothing of how peaks are measured.
"""

from dataclasses import replace
from typing import Final

from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task

_TF32_SPEED: Final = 16.0
"""Most that matrix units do in TF32 for each float32 operation of the others, dense.

Source: data sheets: A100 8, H200 7.4, B200 14. A speed of light may be too fast, never too slow.
"""


def peaks_for(task: Task, device: DeviceSpec, peaks: Peaks) -> Peaks:
    """Return `peaks` with the arithmetic that `task` allows on `device`."""
    if not task.tf32 or device.language is not Language.CUDA:
        return peaks
    return replace(peaks, flops_per_second=_TF32_SPEED * peaks.flops_per_second)
