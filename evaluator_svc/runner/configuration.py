"""One configuration of a candidate in a runner: its programs, and its plan bound to workloads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evaluator_svc.messages.item_order import ItemOrder
from evaluator_svc.messages.runner import LoadRequest, ReorderReply
from evaluator_svc.processes.binding import bind_workload
from evaluator_svc.processes.locked_process import OpenDevice
from evaluator_svc.runner.covered import CoveredRange
from evaluator_svc.runner.inputs import WorkloadInputs
from evaluator_svc.runner.load_program import load_program
from evaluator_svc.runner.loaded_workload import LoadedWorkload
from evaluator_svc.sizes.spare_use import is_spare_of_use
from evaluator_svc.spirv.reordered import reordered
from kernel_foundry.domain.admission import NamedTensor
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.tree import Plan


class LoadedConfiguration:
    """A candidate's programs for one configuration.

    Raises:
        CandidateFaultError: the device refuses the code.
    """

    def __init__(
        self, opened: OpenDevice, request: LoadRequest, objects: tuple[bytes, ...]
    ) -> None:
        self._opened = opened
        self._request = request
        self._objects = list(zip(objects, request.kernels, strict=True))
        """Object code and kernels of each unit."""
        self._programs = [load_program(opened.device, code, names) for code, names in self._objects]
        self._units: dict[str, int] = {}
        self._reordered: dict[int, tuple[Any, ItemOrder]] = {}
        """By unit: its program in reverse order, or None, and what becomes of work-items."""
        self.workloads: dict[str, LoadedWorkload] = {}
        """Those that the plan is bound to, by name."""

    def bind(
        self,
        plan: Plan,
        inputs: Mapping[str, WorkloadInputs],
        hidden: Callable[[], Iterable[CoveredRange]],
    ) -> None:
        """Bind the plan to every workload, and to a spare one if it shows more than others do.

        Args:
            plan: The candidate's.
            inputs: Of each workload.
            hidden: Returns what `prepare` may not see.

        Raises:
            PlanError: it does not fit a workload that is not optional.
        """
        request = self._request
        own: list[Sequence[NamedTensor]] = []
        taken: list[Sequence[NamedTensor]] = []
        for names, unit in zip(request.workloads, request.unit_of_workload, strict=True):
            if names.is_spare and not is_spare_of_use(names.tensors, taken, own):
                continue
            try:
                sequence = bind_workload(
                    plan,
                    names,
                    source=request.source,
                    configuration=request.configuration,
                    device=request.device,
                    library_ops=request.library_ops,
                )
            except PlanError:
                if not names.is_optional:
                    raise
                continue
            (taken if names.is_optional else own).append(names.tensors)
            self._units[names.workload] = unit
            self.workloads[names.workload] = LoadedWorkload(
                self._opened,
                self._programs[unit],
                sequence,
                inputs[names.workload],
                hidden=hidden,
                tf32=request.tf32,
            )

    def run_reordered(self, workload: str) -> ReorderReply:
        """Run every seed in reverse order, with a program that is made when it is first wanted."""
        unit = self._units[workload]
        if unit not in self._reordered:
            code, kernels = self._objects[unit]
            made = reordered(code)
            program = (
                None if made is None else load_program(self._opened.device, made.code, kernels)
            )
            self._reordered[unit] = (program, ItemOrder.KEPT if made is None else made.items)
        program, items = self._reordered[unit]
        if program is not None:
            self.workloads[workload].run_reordered(program)
        return ReorderReply(reverses_groups=program is not None, items=items)
