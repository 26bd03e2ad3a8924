"""What an admission finds out about one workload before anything is timed: graph, cost, bound."""

from torch.export import ExportedProgram

from evaluator_svc.judge.admission.answer_check import ADMISSION_SEEDS
from evaluator_svc.judge.graph.arithmetic_estimate import arithmetic_estimate
from evaluator_svc.judge.graph.cost import count_cost
from evaluator_svc.judge.graph.graph import export_program, graph_of
from evaluator_svc.judge.graph.traffic import count_traffic, traffic_bound_ns
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from kernel_foundry.domain.admission import GraphNode, WorkloadAdmission
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.errors import TaskInvalidError


def workload_admission(
    item: PreparedWorkload,
    program: ExportedProgram | None,
    device: DeviceSpec,
    peaks: Peaks,
    warnings: list[str],
) -> WorkloadAdmission:
    """Return the facts of a workload, without times.

    Args:
        item: The workload.
        program: Its exported reference; None: it has no graph.
        device: Where it is judged.
        peaks: Measured rates of the device.
        warnings: Gets one if there is no graph.
    """
    graph = _graph(item, program, warnings)
    cost = count_cost(item.product_flops, graph)
    traffic = count_traffic(item.tensors, graph)
    estimate = arithmetic_estimate(cost, peaks, tf32=item.task.tf32)
    return WorkloadAdmission(
        workload=item.workload.name,
        held_out=item.workload.held_out,
        tensors=item.tensors,
        scalars=item.scalars,
        graph=graph,
        flops=cost.flops,
        minimal_bytes=traffic.bytes,
        traffic_bound_ns=traffic_bound_ns(traffic, cache_bytes=device.cache_bytes, peaks=peaks),
        arithmetic_estimate_ns=estimate.time_ns,
        arithmetic_unit=estimate.unit,
        reference_bytes=item.sizes.reference_bytes,
        baselines=(),
    )


def exported_program(item: PreparedWorkload, warnings: list[str]) -> ExportedProgram | None:
    """Return a reference as torch.export follows it; None, and a warning, if it cannot."""
    try:
        return export_program(*item.shared_set(ADMISSION_SEEDS[0]).callable_model())
    except TaskInvalidError as error:
        warnings.append(f"no operator graph: {error.message}")
        return None


def _graph(
    item: PreparedWorkload, program: ExportedProgram | None, warnings: list[str]
) -> tuple[GraphNode, ...]:
    try:
        return () if program is None else graph_of(program, item.tensors)
    except TaskInvalidError as error:
        warnings.append(f"no operator graph: {error.message}")
        return ()
