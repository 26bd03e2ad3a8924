"""Values of the domain that many tests need and few are about.

A test changes the fields that matter to it, and depends on no other.
"""

from typing import Any

from kernel_foundry.domain.admission import WorkloadAdmission
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import StopReason, Timing
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task, Workload

CPU = DeviceSpec(
    id="sycl:0",
    language=Language.SYCL,
    name="a CPU",
    vendor="a vendor",
    architecture="x86_64",
    driver_version="1",
    compute_units=2,
    sub_group_size=16,
    max_block=8192,
    shared_bytes=1 << 18,
    memory_bytes=8 << 30,
    cache_bytes=32 << 20,
)
H200 = DeviceSpec(
    id="cuda:0",
    language=Language.CUDA,
    name="NVIDIA H200",
    vendor="NVIDIA",
    architecture="sm_90",
    driver_version="580",
    compute_units=132,
    sub_group_size=32,
    max_block=1024,
    shared_bytes=227 << 10,
    memory_bytes=140 << 30,
    cache_bytes=60 << 20,
)


def timing_of(median_ns: float, *, half_width: float = 0.0, **fields: Any) -> Timing:
    """Return a measurement with this median, known to ± `half_width` of it."""
    given = {
        "samples_ns": (median_ns,),
        "median_ns": median_ns,
        "ci95_ns": (median_ns * (1 - half_width), median_ns * (1 + half_width)),
        "stop_reason": StopReason.CONVERGED,
        "is_cold": True,
        "warmup_count": 1,
        "discarded_count": 0,
    }
    return Timing(**(given | fields))


def workload_admission(workload: str = "default", **fields: Any) -> WorkloadAdmission:
    """Return a workload without tensors and work but for `fields`."""
    given = {
        "held_out": False,
        "tensors": (),
        "scalars": (),
        "graph": (),
        "flops": 1,
        "minimal_bytes": 1,
        "traffic_bound_ns": 1.0,
        "arithmetic_estimate_ns": 1.0,
        "arithmetic_unit": "FMA",
        "baselines": (),
    }
    return WorkloadAdmission(workload=workload, **(given | fields))


def run_spec(name: str = "run", **fields: Any) -> RunSpec:
    """Return what a run of one workload is asked to do."""
    given = {
        "task": Task(
            name="t", reference="class Model: ...\n", workloads=(Workload(name="default"),)
        ),
        "language": Language.SYCL,
        "device": "fake:0",
        "models": ("fake",),
        "strategy": "fitness",
        "seed": 0,
    }
    return RunSpec(name=name, **(given | fields))
