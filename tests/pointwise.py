"""What an evaluator on a CPU says of a pointwise task."""

from kernel_foundry.domain.admission import (
    Admission,
    GraphNode,
    NamedTensor,
    TensorRole,
    WorkloadAdmission,
)
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task, Tolerance


def pointwise_admission(task: Task) -> Admission:
    """Return the admission of a task that multiplies and adds."""
    x = NamedTensor(name="x", role=TensorRole.INPUT, dtype="float32", shape=(4, 64))
    out = NamedTensor(name="out", role=TensorRole.OUTPUT, dtype="float32", shape=(4, 64))
    nodes = (
        ("x", "placeholder", ()),
        ("mul", "aten.mul.Tensor", ("%x", "2.0")),
        ("add", "aten.add.Tensor", ("%mul", "1.0")),
        ("output", "output", ("%add",)),
    )
    graph = tuple(
        GraphNode(
            name=name, op=op, arguments=arguments, keywords=(), dtype="float32", shape=(4, 64)
        )
        for name, op, arguments in nodes
    )
    workload = WorkloadAdmission(
        workload="default",
        held_out=False,
        tensors=(x, out),
        scalars=(),
        graph=graph,
        flops=512,
        minimal_bytes=2048,
        traffic_bound_ns=100.0,
        arithmetic_estimate_ns=100.0,
        arithmetic_unit="FMA",
        baselines=(),
    )
    device = DeviceSpec(
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
        memory_bytes=1 << 33,
        cache_bytes=1 << 25,
    )
    return Admission(
        task=task.digest,
        device=device,
        workloads=(workload,),
        tolerance=Tolerance(rtol=1e-4, atol=1e-5),
    )
