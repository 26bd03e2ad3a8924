"""What an evaluator on a CPU says of a pointwise task."""

from kernel_foundry.domain.admission import (
    Admission,
    GraphNode,
    NamedTensor,
    TensorRole,
)
from kernel_foundry.domain.task import Task, Tolerance
from tests.domain_values import CPU, workload_admission


def pointwise_admission(task: Task) -> Admission:
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
    workload = workload_admission(
        tensors=(x, out),
        graph=graph,
        flops=512,
        minimal_bytes=2048,
        traffic_bound_ns=100.0,
        arithmetic_estimate_ns=100.0,
    )
    return Admission(
        task=task.digest,
        device=CPU,
        workloads=(workload,),
        tolerance=Tolerance(rtol=1e-4, atol=1e-5),
    )
