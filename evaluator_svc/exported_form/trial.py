"""Tries one exported file: its module beside its reference's, on a workload.

The reference is the one in the file; what it is held to is the task's tolerance.
"""

import copy
import gc
import math
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import torch

from evaluator_svc.exported_form.samples import (
    cpu_samples,
    gpu_samples,
    graph_samples,
    host_samples,
    interval,
    warmed_up,
)
from evaluator_svc.hardware.openmp import set_threads
from evaluator_svc.judge.comparison.compare import allowed_mismatches
from evaluator_svc.judge.comparison.no_number import no_number_in
from evaluator_svc.judge.draws.expected_output import expect
from evaluator_svc.judge.memory.host_memory import HostMemory
from evaluator_svc.judge.reference.check_call import refusal_in, shown_values
from evaluator_svc.judge.reference.task_module import seed_all
from evaluator_svc.runner.library_threads import choose_threads
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.exported_form import FormEntry, FormRequest, FormResult, FormWorkload

_CHANGE: Final = 0.02
"""How far weights are moved from what the constructor makes, which may be zeros."""


class Case(NamedTuple):
    """An exported module beside the reference's, with the same weights."""

    source: Any
    """Module of the reference with a workload's sizes."""
    reference: Any
    model: Any
    inputs: list[torch.Tensor]
    values: list[Any]
    """What forward takes: the inputs among its arguments."""


class Trial:
    """One exported file on trial.

    Args:
        request: What is asked.
        exported: The file's module.
        memory: Where the comparison works.
    """

    def __init__(self, request: FormRequest, exported: Any, memory: HostMemory) -> None:
        self.request = request
        self.file = exported
        self.memory = memory
        self.device = torch.device(request.device)
        self.container = ""
        """What the reference returned its results in: "tensor", "tuple" or "list"."""
        self._seed = secrets.randbelow(1 << 31)

    def run(self, workload: FormWorkload) -> FormResult:
        """Compare the file's module with its reference on a workload, and time it."""
        try:
            return self.compared(workload)
        except Exception as error:  # noqa: BLE001  whatever a file raises is what is told of it
            return failed(workload, f"{type(error).__name__}: {error}")
        finally:
            gc.collect()

    def case(self, workload: FormWorkload) -> Case:
        """Return the file's module and the reference's, with weights of their own, and inputs."""
        sizes = tuple(sorted((size.name, size.value) for size in workload.sizes))
        source = self.file.reference_at(sizes)
        reference = self._new(source.Model, source)
        with torch.no_grad():
            for weight in reference.parameters():
                if weight.is_floating_point():
                    weight.add_(torch.randn_like(weight), alpha=_CHANGE)
        model = self._exported(reference, source)
        arguments = self.file.flat(source.get_inputs())
        inputs = [self._cast(tensor.contiguous()) for tensor in arguments[0]]
        return Case(source, reference, model, inputs, self.file.filled(arguments[1], inputs))

    def compared(self, workload: FormWorkload) -> FormResult:
        """Return how the file's results are on a workload; raises whatever the file raises."""
        source, reference, model, inputs, values = self.case(workload)
        kept = {name: value.clone() for name, value in reference.state_dict().items()}
        with torch.no_grad():
            answer = reference(*values)
            self.container = _container(answer)
            expected = self.file.results_of(answer)
            changed = [n for n, v in reference.state_dict().items() if not torch.equal(v, kept[n])]
            if changed:
                return failed(workload, f"the reference changes its own {', '.join(changed)}")
            before = self.file.stats()
            found = self._answer(model, values, expected)
        results: list[torch.Tensor] = self.file.results_of(found)
        after = self.file.stats()
        if after["kernel"] != before["kernel"] + 1:
            return failed(workload, f"the reference ran: {after['last_reason']}")
        if self._is_module and _container(found) != self.container:
            text = f"it returns a {_container(found)}, the reference a {self.container}"
            return failed(workload, text)
        share = 0.0
        if self.request.compare:
            share = error_share(
                results,
                expected,
                workload.tolerance,
                is_scaled=self.request.is_scaled,
                memory=self.memory,
            )
        if not self.request.compare and (said := no_number_in(expected, results)):
            return failed(workload, said)
        if check := self.request.check:
            with torch.no_grad():
                answer = getattr(source, check)(*shown_values(values, expected, results))
            if said := refusal_in(answer, f"{check}()"):
                return failed(workload, f"{check}() of the task refuses it: {said}")
        if not share <= 1.0:
            return failed(workload, f"wrong by {share:.3g} times what the tolerance allows")
        if not workload.is_timed:
            return FormResult(name=workload.name, error_share=share)
        return self._timed(workload, share, model, reference, values, inputs, expected)

    def _timed(
        self,
        workload: FormWorkload,
        share: float,
        model: Any,
        reference: Any,
        values: list[Any],
        inputs: list[torch.Tensor],
        expected: list[torch.Tensor],
    ) -> FormResult:
        kind = self.file.kind_of(model._kf.kind)
        tensors = [*inputs, *self.file.weights_of(model)]
        call = self.file.bound_call(kind, tensors)
        results = call.new_results()

        call_whole = partial(self._answer, model, values, expected)
        if self._is_module:
            call_whole = partial(model, *values)  # as the user's program does
        with torch.no_grad():
            kernels = self._kernel_samples(call, tensors, results, inputs)
            calls = self.samples(call_whole)
            eager = self.samples(lambda: reference(*values))
            is_gpu = self.device.type == "cuda"
            host = host_samples(call_whole) if is_gpu else self.idle_samples(call_whole)
            is_captured = is_gpu and self.request.entry is not FormEntry.CUSTOM_KERNEL
            graph = graph_samples(call_whole, inputs) if is_captured else []
            fixed = []
            if is_captured and call.prepared:
                with self.file.fixed_weights():
                    fixed = graph_samples(call_whole, inputs)
        lower, median, upper = interval(kernels)
        return FormResult(
            name=workload.name,
            error_share=share,
            kernels_ns=(lower, median, upper),
            call_ns=interval(calls)[1],
            host_ns=interval(host)[1],
            graph_ns=interval(graph)[1] if graph else None,
            fixed_graph_ns=interval(fixed)[1] if fixed else None,
            eager_ns=interval(eager)[1],
        )

    def _kernel_samples(
        self,
        call: Any,
        tensors: list[torch.Tensor],
        results: list[torch.Tensor],
        inputs: list[torch.Tensor],
    ) -> list[float]:
        """Time the launches; library calls on a CPU have threads as in a verdict."""
        run = partial(call.run, tensors, results)
        if self.device.type == "cuda" or not call.has_library:
            return self.kernel_samples(run, inputs)
        every = torch.get_num_threads()
        choose_threads(run)
        try:
            return self.kernel_samples(run, inputs)
        finally:
            set_threads(every)

    def _exported(self, reference: Any, source: Any) -> Any:
        model = self._new(self._entry_class(), source)
        kind = self.file.Identity(reference, "").kind
        if kind and kind == model._kf.kind:
            model.load_state_dict(reference.state_dict())
            return model
        # Its constructor reads the file's own sizes: modules of others are the program's.
        return self.file.adopted(copy.deepcopy(reference), self._entry_class())

    def _entry_class(self) -> Any:
        is_new = self.request.entry is FormEntry.MODEL_NEW
        return self.file.ModelNew if is_new else self.file.Module

    @property
    def _is_module(self) -> bool:
        return self.request.entry in (FormEntry.MODULE, FormEntry.MODEL_NEW)

    def _answer(self, model: Any, values: list[Any], expected: list[torch.Tensor]) -> Any:
        """What the file's entry computes, called as where it is used."""
        if self._is_module:
            return model(*values)
        weights = self.file.weights_of(model)
        if self.request.entry is FormEntry.RUN:
            made = [torch.empty(e.shape, dtype=e.dtype, device=e.device) for e in expected]
            self.file.run(*values, *weights, *made)
            return made
        return self.file.custom_kernel((*values, *weights))

    def kernel_samples(
        self, run: Callable[[], object], inputs: Sequence[torch.Tensor]
    ) -> list[float]:
        """Times in nanoseconds of the device's work in a call, without what starts it."""
        if self.device.type != "cuda":
            return self.samples(run)
        # A file may queue all work by default, which no graph captures.
        queue, self.file.current_queue = self.file.current_queue, _captured_queue
        try:
            warmed_up(run)
            with self.file.fixed_weights():  # a verdict's are laid out once
                return graph_samples(run, inputs)
        finally:
            self.file.current_queue = queue

    def samples(self, run: Callable[[], object]) -> list[float]:
        """Times of a call in nanoseconds."""
        warmed_up(run)
        return gpu_samples(run) if self.device.type == "cuda" else cpu_samples(run)

    def idle_samples(self, run: Callable[[], object]) -> list[float]:
        """Times of a call in nanoseconds whose launches do nothing: a CPU returns after them."""
        device = self.file.CpuDevice
        own, device.run = device.run, _nothing
        try:
            return self.samples(run)
        finally:
            device.run = own

    def _new(self, kind: Any, source: Any) -> Any:
        """A module of a class, with the reference's arguments; two of them have equal weights."""
        seed_all(self._seed, torch.device("cpu"))
        model = kind(*getattr(source, "get_init_inputs", list)())
        cast = getattr(torch, self.file.CAST) if self.file.CAST else None
        return model.to(device=self.device, dtype=cast).train(self.file.TRAINING)

    def _cast(self, tensor: torch.Tensor) -> torch.Tensor:
        is_cast = bool(self.file.CAST) and tensor.is_floating_point()
        dtype = getattr(torch, self.file.CAST) if is_cast else tensor.dtype
        return tensor.to(device=self.device, dtype=dtype)


def error_share(
    results: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    tolerance: Tolerance,
    *,
    is_scaled: bool,
    memory: HostMemory,
) -> float:
    """Return the largest error over what is allowed, dimensionless; infinity: it is no number.

    The largest ones are left out, as many as the tolerance lets be wrong.
    """
    worst = 0.0
    for result, wanted in zip(results, expected, strict=True):
        if (result.shape, result.dtype) != (wanted.shape, wanted.dtype):
            return math.inf
        found, whole = result.cpu(), wanted.cpu().contiguous()
        if whole.is_floating_point():
            bound = expect(whole, is_scaled=is_scaled, memory=memory).bound(tolerance)
            error = (found.double() - whole.double()).abs()
            ratio = error / bound.double().clamp(min=1e-45)
            ratio[found.isnan() & whole.isnan() | (found == whole)] = 0.0
            largest = float(ratio.max())
            if not math.isfinite(largest):
                return math.inf
            most = allowed_mismatches(ratio.numel(), tolerance.matched, largest)
            rank = max(ratio.numel() - most, 1)
            worst = max(worst, float(ratio.flatten().kthvalue(rank).values))
        elif not torch.equal(found, whole):
            return math.inf
    return worst


def _container(answer: Any) -> str:
    if isinstance(answer, torch.Tensor):
        return "tensor"
    return "list" if isinstance(answer, list) else "tuple"


def _nothing(*_arguments: object) -> None:
    """Stand for a row of launches."""


def _captured_queue(index: int) -> int:
    """The driver's handle of a GPU's current stream."""
    handle: int = torch._C._cuda_getCurrentRawStream(index)
    return handle


def failed(workload: FormWorkload, failure: str) -> FormResult:
    """Return why a file is wrong on a workload."""
    return FormResult(name=workload.name, failure=failure[:2000])
