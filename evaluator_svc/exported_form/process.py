"""The process that tries an exported file: locks itself in, imports the file, and compares.

From the import on nothing of this package can be imported, as in the user's program. The reference
is the one in the file; what it is held to is the task's tolerance.
"""

import copy
import gc
import importlib.util
import math
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch

from evaluator_svc.judge.comparison.compare import allowed_mismatches
from evaluator_svc.judge.comparison.no_number import no_number_in
from evaluator_svc.judge.draws.expected_output import expect
from evaluator_svc.judge.memory.host_memory import HostMemory
from evaluator_svc.judge.reference.check_call import refusal_in, shown_values
from evaluator_svc.judge.reference.task_module import seed_all
from evaluator_svc.sandbox.absent_packages import hide_own_packages
from evaluator_svc.sandbox.confinement import Confinement, confine
from kernel_foundry.domain.median import median_interval
from kernel_foundry.domain.plain import from_json, to_json
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.exported_form import (
    FormEntry,
    FormReport,
    FormRequest,
    FormResult,
    FormWorkload,
)

_FILE: Final = "exported.py"
_SECONDS: Final = 0.4
"""Most that the samples of one figure take."""
_LEAST_SAMPLES: Final = 20
_MOST_SAMPLES: Final = 500
_WARM_UP: Final = 5
_BATCH: Final = 20
"""Calls in one captured graph, at most: its own start is divided among them."""
_BATCH_NS: Final = 2e5
"""How long such a graph runs about. Longer ones would heat the device until it lowers its clock,
which the judge's calls, with other work between them, do not."""
_CHANGE: Final = 0.02
"""How far weights are moved from what the constructor makes, which may be zeros."""


class Trial:
    """One exported file on trial.

    Args:
        request: What is asked.
        exported: The file's module.
        memory: Where the comparison works.
    """

    def __init__(self, request: FormRequest, exported: Any, memory: HostMemory) -> None:
        self._request = request
        self._file = exported
        self._memory = memory
        self._device = torch.device(request.device)
        self._seed = secrets.randbelow(1 << 31)

    def run(self, workload: FormWorkload) -> FormResult:
        """Compare the file's module with its reference on a workload, and time it."""
        try:
            return self._run(workload)
        except Exception as error:  # noqa: BLE001  whatever a file raises is what is told of it
            return _failed(workload, f"{type(error).__name__}: {error}")
        finally:
            gc.collect()

    def _run(self, workload: FormWorkload) -> FormResult:
        sizes = tuple(sorted((size.name, size.value) for size in workload.sizes))
        source = self._file.reference_at(sizes)
        reference = self._new(source.Model, source)
        with torch.no_grad():
            for weight in reference.parameters():
                if weight.is_floating_point():
                    weight.add_(torch.randn_like(weight), alpha=_CHANGE)
        model = self._exported(reference, source)
        arguments = self._file.flat(source.get_inputs())
        inputs = [self._cast(tensor.contiguous()) for tensor in arguments[0]]
        values = self._file.filled(arguments[1], inputs)
        kept = {name: value.clone() for name, value in reference.state_dict().items()}
        with torch.no_grad():
            expected = self._file.results_of(reference(*values))
            changed = [n for n, v in reference.state_dict().items() if not torch.equal(v, kept[n])]
            if changed:
                return _failed(workload, f"the reference changes its own {', '.join(changed)}")
            before = self._file.stats()
            results = self._results_of(model, values, expected)
        after = self._file.stats()
        if after["kernel"] != before["kernel"] + 1:
            return _failed(workload, f"the reference ran: {after['last_reason']}")
        share = 0.0
        if self._request.compare:
            share = error_share(
                results,
                expected,
                workload.tolerance,
                is_scaled=self._request.is_scaled,
                memory=self._memory,
            )
        if not self._request.compare and (said := no_number_in(expected, results)):
            return _failed(workload, said)
        if check := self._request.check:
            with torch.no_grad():
                answer = getattr(source, check)(*shown_values(values, expected, results))
            if said := refusal_in(answer, f"{check}()"):
                return _failed(workload, f"{check}() of the task refuses it: {said}")
        if not share <= 1.0:
            return _failed(workload, f"wrong by {share:.3g} times what the tolerance allows")
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
        kind = self._file.kind_of(model._kf.kind)
        tensors = [*inputs, *self._file.weights_of(model)]
        call = self._file.bound_call(kind, tensors)
        results = call.new_results()

        call_whole = partial(self._results_of, model, values, expected)
        if self._request.entry in (FormEntry.MODULE, FormEntry.MODEL_NEW):
            call_whole = partial(model, *values)  # as the user's program does
        with torch.no_grad():
            kernels = self._kernel_samples(lambda: call.run(tensors, results), inputs)
            calls = self._samples(call_whole)
            eager = self._samples(lambda: reference(*values))
            is_gpu = self._device.type == "cuda"
            host = _host_samples(call_whole) if is_gpu else self._idle_samples(call_whole)
            is_captured = is_gpu and self._request.entry is not FormEntry.CUSTOM_KERNEL
            graph = _graph_samples(call_whole, inputs) if is_captured else []
        lower, median, upper = _interval(kernels)
        return FormResult(
            name=workload.name,
            error_share=share,
            kernels_ns=(lower, median, upper),
            call_ns=_interval(calls)[1],
            host_ns=_interval(host)[1],
            graph_ns=_interval(graph)[1] if graph else None,
            eager_ns=_interval(eager)[1],
        )

    def _exported(self, reference: Any, source: Any) -> Any:
        model = self._new(self._entry_class(), source)
        kind = self._file.Identity(reference, "").kind
        if kind and kind == model._kf.kind:
            model.load_state_dict(reference.state_dict())
            return model
        # Its constructor reads the file's own sizes: modules of others are the program's.
        return self._file.adopted(copy.deepcopy(reference), self._entry_class())

    def _entry_class(self) -> Any:
        is_new = self._request.entry is FormEntry.MODEL_NEW
        return self._file.ModelNew if is_new else self._file.Module

    def _results_of(
        self, model: Any, values: list[Any], expected: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        """What the file's entry computes, called as where it is used."""
        if self._request.entry is FormEntry.RUN:
            made = [torch.empty(e.shape, dtype=e.dtype, device=e.device) for e in expected]
            self._file.run(*values, *made)
            return made
        is_function = self._request.entry is FormEntry.CUSTOM_KERNEL
        result = self._file.custom_kernel(tuple(values)) if is_function else model(*values)
        results: list[torch.Tensor] = self._file.results_of(result)
        return results

    def _kernel_samples(
        self, run: Callable[[], object], inputs: Sequence[torch.Tensor]
    ) -> list[float]:
        """Times in nanoseconds of the device's work in a call, without what starts it."""
        if self._device.type != "cuda":
            return self._samples(run)
        # A file may queue all work by default, which no graph captures.
        queue, self._file.current_queue = self._file.current_queue, _captured_queue
        try:
            for _ in range(_WARM_UP):
                run()
            return _graph_samples(run, inputs)
        finally:
            self._file.current_queue = queue

    def _samples(self, run: Callable[[], object]) -> list[float]:
        """Times of a call in nanoseconds."""
        for _ in range(_WARM_UP):
            run()
        if self._device.type == "cuda":
            return _gpu_samples(run)
        samples: list[float] = []
        end = time.monotonic() + _SECONDS
        while len(samples) < _MOST_SAMPLES and (
            time.monotonic() < end or len(samples) < _LEAST_SAMPLES
        ):
            start = time.perf_counter_ns()
            run()
            samples.append(float(time.perf_counter_ns() - start))
        return samples

    def _idle_samples(self, run: Callable[[], object]) -> list[float]:
        """Times of a call in nanoseconds whose launches do nothing: a CPU returns after them."""
        device = self._file.CpuDevice
        own, device.run = device.run, _nothing
        try:
            return self._samples(run)
        finally:
            device.run = own

    def _new(self, kind: Any, source: Any) -> Any:
        """A module of a class, with the reference's arguments; two of them have equal weights."""
        seed_all(self._seed, torch.device("cpu"))
        model = kind(*getattr(source, "get_init_inputs", list)())
        cast = getattr(torch, self._file.CAST) if self._file.CAST else None
        return model.to(device=self._device, dtype=cast).train(self._file.TRAINING)

    def _cast(self, tensor: torch.Tensor) -> torch.Tensor:
        is_cast = bool(self._file.CAST) and tensor.is_floating_point()
        dtype = getattr(torch, self._file.CAST) if is_cast else tensor.dtype
        return tensor.to(device=self._device, dtype=dtype)


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


def _gpu_samples(run: Callable[[], object]) -> list[float]:
    samples: list[float] = []
    torch.cuda.synchronize()
    for _ in range(_LEAST_SAMPLES):
        start = time.perf_counter_ns()
        for _ in range(_BATCH):
            run()
        torch.cuda.synchronize()
        samples.append((time.perf_counter_ns() - start) / _BATCH)
    return samples


def _nothing(*_arguments: object) -> None:
    """Stand for a row of launches."""


def _captured_queue(index: int) -> int:
    """The driver's handle of a GPU's current stream."""
    handle: int = torch._C._cuda_getCurrentRawStream(index)
    return handle


def _host_samples(run: Callable[[], object]) -> list[float]:
    """Times of a call until it returns: fewer calls in a row than the device's queue takes."""
    samples: list[float] = []
    for _ in range(_LEAST_SAMPLES):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(_BATCH):
            run()
        samples.append((time.perf_counter_ns() - start) / _BATCH)
    torch.cuda.synchronize()
    return samples


def _graph_samples(run: Callable[[], object], inputs: Sequence[torch.Tensor]) -> list[float]:
    """Times of graphs of calls; inputs are written before each, as the judge draws them anew."""
    kept = [tensor.clone() for tensor in inputs]
    count = max(1, min(_BATCH, round(_BATCH_NS / _graph_ns(_graph(run, 1)))))
    graph = _graph(run, count)
    samples: list[float] = []
    for _ in range(2 * _LEAST_SAMPLES):
        for tensor, value in zip(inputs, kept, strict=True):
            tensor.copy_(value)
        samples.append(_graph_ns(graph) / count)
    return samples


def _graph(run: Callable[[], object], count: int) -> torch.cuda.CUDAGraph:
    """Calls in a row, replayed once before they are timed."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            run()
    graph.replay()
    return graph


def _graph_ns(graph: torch.cuda.CUDAGraph) -> float:
    begin, end = (_event() for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e6


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _interval(samples: Sequence[float]) -> tuple[float, float, float]:
    median, (lower, upper) = median_interval(tuple(samples))
    return lower, median, upper


def _failed(workload: FormWorkload, failure: str) -> FormResult:
    return FormResult(name=workload.name, failure=failure[:2000])


def _import(folder: Path, text: str) -> Any:
    path = folder / _FILE
    path.write_text(text, encoding="utf-8")
    hide_own_packages()
    spec = importlib.util.spec_from_file_location("exported", path)
    assert spec is not None, "a Python file has a loader"
    assert spec.loader is not None, "a Python file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules["exported"] = module
    spec.loader.exec_module(module)
    return module


def main(folder: Path) -> None:
    """Do what `request.json` in a folder asks, and write `report.json` there."""
    request = from_json(FormRequest, (folder / "request.json").read_text(encoding="utf-8"))
    confinement = from_json(Confinement, (folder / "lock.json").read_text(encoding="utf-8"))
    if request.device != "cpu":
        torch.cuda.init()  # type: ignore[no-untyped-call]  # the driver needs more to start than the lock leaves
    memory = HostMemory()
    tempfile.tempdir = str(folder)  # or torch would try others, which are locked
    torch.set_float32_matmul_precision("highest")
    isolation = confine(confinement, outer=())
    exported = _import(folder, request.text)
    # Kernels and reference alike, as when they were judged: convolutions may use it by default.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = exported.TF32
    trial = Trial(request, exported, memory)
    report = FormReport(
        results=tuple(trial.run(workload) for workload in request.workloads),
        mechanisms=isolation.mechanisms,
        missing=isolation.missing,
    )
    (folder / "report.json").write_text(to_json(report), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
