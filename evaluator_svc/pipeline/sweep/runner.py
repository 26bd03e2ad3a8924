"""One runner for all configurations of a sweep, and the judge's verdict on each.

A runner that crashes or hangs is replaced, and its inputs are drawn anew, since it may have changed
them. `builds.py` builds configurations, and `race.py` ranks them.
"""

import dataclasses
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.call_draws import call_draws_file
from evaluator_svc.messages.locked import CandidateFailure, WorkloadNames
from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.messages.runner import LoadRequest, RunRequest, TimeReply, TimeRequest
from evaluator_svc.pipeline.memory.memory_plan import MemoryPlan, pool_limit
from evaluator_svc.pipeline.runner_calls import LAST_SECONDS, DrawnInputs, failure_of, load
from evaluator_svc.pipeline.sweep.builds import BuiltConfiguration
from evaluator_svc.pipeline.sweep.race import CLEARLY_SLOWER
from evaluator_svc.pipeline.timing.measurement import (
    fill_pool,
    has_times,
    keep_count,
    measure,
)
from evaluator_svc.processes.ask_candidate import nonsense
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.plan import allowed_library_ops

_FIRST_SAMPLES: Final = (5, 7)
"""Fewest and most samples of a configuration's first block."""
_BLOCK_SAMPLES: Final = (10, 20)
"""Fewest and most samples of each further block."""
_BLOCK_SHARE: Final = 0.25
"""Share of `timing_seconds` for one block on one workload."""
_SUSPICIOUS: Final = 3.0
"""If the first run takes this many times the incumbent's upper bound, the configuration is timed
once more, since a first launch is slow. If that sample is clearly slower too, it is out."""
_SLOWER: Final = 1.05
"""A block ends after three samples that are all this many times the incumbent's upper bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A configuration that is right, with its first block of samples."""

    timed: tuple[TimeReply, ...]
    """One for each timed workload."""
    load_ms: float
    verification_ms: float
    benchmark_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Another block of samples."""

    timed: tuple[TimeReply, ...]
    """One for each timed workload."""
    benchmark_ms: float


class SweepRunner:
    """Tries configurations one after the other; used by one thread.

    Args:
        site: The device.
        request: The sweep.
        admission: The task as the device sees it.
        names: What the plan may name in each workload.
        uses_library: Whether the plan makes library calls.
        memory: How the workloads are judged.
    """

    def __init__(
        self,
        site: DeviceSite,
        request: SweepRequest,
        admission: Admission,
        names: tuple[WorkloadNames, ...],
        *,
        uses_library: bool,
        memory: MemoryPlan,
    ) -> None:
        self._memory = memory
        self._site = site
        self._judge = site.judge
        """The process that holds these inputs; one that is started in its place does not."""
        self._request = request
        self._admission = admission
        self._library_ops = allowed_library_ops(request.task, admission)
        self._names = names
        self._timed = {w.workload for w in admission.workloads if not w.held_out}
        self._runners = site.library_runners if uses_library else site.runners
        self._process: ChildProcess | None = None
        self._drawn: list[DrawnInputs] = []
        """One for each workload."""
        self._loaded: set[int] = set()
        """Configurations that the present process holds."""
        self._to_forget: set[int] = set()
        self._filled: set[str] = set()
        """Workloads whose pool the present process has."""

    def open(self) -> None:
        """Take a runner and draw the inputs, ahead of the first attempt."""
        self._opened()

    def attempt(
        self, built: BuiltConfiguration, incumbent_upper_ns: tuple[float, ...]
    ) -> Attempt | CandidateFailure:
        """Load, run, time and verify one configuration."""
        tried = self._try(built, incumbent_upper_ns)
        if isinstance(tried, CandidateFailure):
            return tried
        started = time.perf_counter()
        failure = self._verify(tried.timed)
        judged_ms = 1e3 * (time.perf_counter() - started)
        if failure is not None:
            self._to_forget.add(built.number)
            return failure
        return dataclasses.replace(tried, verification_ms=tried.verification_ms + judged_ms)

    def time_again(self, built: BuiltConfiguration) -> Block | CandidateFailure:
        """Take another block of samples of a configuration that was right."""
        if built.number not in self._loaded:  # the process that held it is gone
            tried = self._try(built, ())
            if isinstance(tried, CandidateFailure):
                return tried
            self._poison()  # else the next one, should it write nothing, would find these outputs
            return Block(timed=tried.timed, benchmark_ms=tried.benchmark_ms)
        process, settings = self._opened(), self._settings(_BLOCK_SAMPLES, warmup_calls=1)
        started = time.perf_counter()
        timed: list[TimeReply] = []
        for inputs in self._timed_inputs():
            block = self._measure(process, inputs, built.number, settings, keep=0)
            if isinstance(block, CandidateFailure):
                return self._settled(built.number, block)
            timed.append(block)
        return Block(timed=tuple(timed), benchmark_ms=1e3 * (time.perf_counter() - started))

    def forget(self, numbers: Sequence[int]) -> None:
        """Let the runner give up configurations that are out of the race."""
        self._to_forget.update(numbers)

    def close(self) -> None:
        """End the runner and give its inputs back."""
        has_ended = True
        if self._process is not None:
            # A driver may take long to end a kernel, and till then it writes into these draws.
            has_ended = (self._process.kill() or self._process.wait(LAST_SECONDS)) is not None
            self._process = None
        self._loaded.clear()
        self._to_forget.clear()
        self._filled.clear()
        drawn, self._drawn = self._drawn, []
        for inputs in drawn:
            inputs.close()
            # A judge that is gone holds nothing any more; the next question says so.
            with suppress(KernelFoundryError):
                if has_ended:
                    self._judge.release(inputs.draw.draw)

    def _opened(self) -> ChildProcess:
        if self._process is None:
            self._process = self._runners.take()
            for workload in self._admission.workloads:
                self._drawn.append(self._draw(workload.workload))
        return self._process

    def _draw(self, workload: str) -> DrawnInputs:
        draw, descriptors = self._judge.draw(
            self._request.task,
            workload,
            self._request.task.tolerance_of(workload, self._admission.tolerance),
            (secrets.randbits(31),),
            is_lean=workload in self._memory.lean,
        )
        return DrawnInputs(draw=draw, descriptors=descriptors)

    def _timed_inputs(self) -> list[DrawnInputs]:
        return [inputs for inputs in self._drawn if inputs.draw.workload in self._timed]

    def _try(
        self, built: BuiltConfiguration, incumbent_upper_ns: tuple[float, ...]
    ) -> Attempt | CandidateFailure:
        """Load, run and time one configuration; its outputs are not yet verified."""
        process, number = self._opened(), built.number
        limits = self._request.limits
        request = self._load_request(built)
        descriptors = () if self._loaded else tuple(d for i in self._drawn for d in i.descriptors)
        started = time.perf_counter()
        loaded = load(
            process,
            request,
            built.built.codes,
            seconds=limits.run_seconds + _BLOCK_SHARE * limits.timing_seconds,
            descriptors=descriptors,
        )
        if isinstance(loaded, CandidateFailure):
            return self._settled(number, loaded)
        self._loaded.add(number)
        run_ns = {
            r.draw.workload: ran.run_ns for r, ran in zip(request.runs, loaded.runs, strict=True)
        }
        time_started = time.perf_counter()
        timed: list[TimeReply] = []
        limits_ns = incumbent_upper_ns or (0.0,) * len(self._timed)
        for inputs, limit_ns in zip(self._timed_inputs(), limits_ns, strict=True):
            is_suspicious = 0 < _SUSPICIOUS * limit_ns < run_ns[inputs.draw.workload]
            block = self._time_first(process, inputs, number, limit_ns, is_suspicious=is_suspicious)
            if isinstance(block, CandidateFailure):
                return self._settled(number, block)
            timed.append(block)
        load_ms = loaded.load_ms + loaded.bind_ms
        return Attempt(
            timed=tuple(timed),
            load_ms=load_ms,
            verification_ms=max(1e3 * (time_started - started) - load_ms, 0.0),
            benchmark_ms=1e3 * (time.perf_counter() - time_started),
        )

    def _load_request(self, built: BuiltConfiguration) -> LoadRequest:
        forgotten = tuple(sorted(self._to_forget))
        self._to_forget.clear()
        self._loaded.difference_update(forgotten)
        return LoadRequest(
            source=self._request.source,
            configuration=built.parsed.configuration,
            device=self._site.spec,
            workloads=self._names,
            kernels=tuple(unit.kernels for unit in built.parsed.units),
            unit_of_workload=built.parsed.unit_of_workload,
            library_ops=self._library_ops,
            tf32=self._request.task.tf32,
            number=built.number,
            forget=forgotten,
            runs=tuple(
                RunRequest(
                    draw=inputs.draw,
                    # The other slots are for timed calls.
                    into_last=inputs.draw.workload in self._timed,
                    number=built.number,
                )
                for inputs in self._drawn
            ),
        )

    def _time_first(
        self,
        process: ChildProcess,
        inputs: DrawnInputs,
        number: int,
        limit_ns: float,
        *,
        is_suspicious: bool,
    ) -> TimeReply | CandidateFailure:
        """Take a first block, of few samples where the incumbent is out of reach."""
        workload = inputs.draw.workload
        if workload not in self._filled:
            pool = fill_pool(
                process,
                workload,
                self._site.spec,
                limit_bytes=pool_limit(workload, self._memory, self._site),
                number=number,
            )
            if isinstance(pool, CandidateFailure):
                return pool
            self._filled.add(workload)
        keep = keep_count(inputs.draw)
        # The run has just warmed everything up.
        settings = self._settings(_FIRST_SAMPLES, warmup_calls=0)
        if is_suspicious:
            once = dataclasses.replace(settings, min_samples=1, max_samples=1)
            timed = self._measure(process, inputs, number, once, keep=keep)
            if isinstance(timed, CandidateFailure):
                return timed
            if min(timed.samples_ns) > CLEARLY_SLOWER * limit_ns:
                return timed
        settings = dataclasses.replace(settings, stop_above_ns=limit_ns, stop_factor=_SLOWER)
        return self._measure(process, inputs, number, settings, keep=keep)

    def _measure(
        self,
        process: ChildProcess,
        inputs: DrawnInputs,
        number: int,
        settings: MeasurementSettings,
        *,
        keep: int,
    ) -> TimeReply | CandidateFailure:
        request = TimeRequest(
            workload=inputs.draw.workload,
            settings=settings,
            poison=True,
            keep_count=keep,
            number=number,
        )
        with call_draws_file(secrets.randbits(63)) as call_draws:
            timed = measure(
                process, request, (call_draws,), run_seconds=self._request.limits.run_seconds
            )
        if isinstance(timed, TimeReply) and not has_times(timed):
            return nonsense("timing the kernels", "no samples")
        return timed

    def _settings(self, samples: tuple[int, int], *, warmup_calls: int) -> MeasurementSettings:
        fewest, most = samples
        return MeasurementSettings(
            seconds=_BLOCK_SHARE * self._request.limits.timing_seconds,
            min_samples=fewest,
            max_samples=most,
            warmup_calls=warmup_calls,
            flush_bytes=self._site.spec.flush_bytes,
        )

    def _verify(self, timed: tuple[TimeReply, ...]) -> CandidateFailure | None:
        """Return the failure of the outputs, if any; leaves them poisoned for the next call."""
        failure = None
        is_spoiled = False
        blocks = iter(timed)
        # All of them, whatever is found: the next one is not to answer for inputs changed by this.
        for inputs in self._drawn:
            is_timed = inputs.draw.workload in self._timed
            slots = _written(inputs, next(blocks)) if is_timed else ()
            verdict = self._judge.verify(inputs.draw.draw, slots)
            failure = failure or failure_of(verdict, inputs.draw.workload)
            is_spoiled = is_spoiled or bool(verdict.inputs_modified or verdict.stray_writes)
        if is_spoiled:
            self.close()
        else:
            self._poison()
        return failure

    def _settled(self, number: int, failure: CandidateFailure) -> CandidateFailure:
        if failure.is_runner_usable:
            self._to_forget.add(number)
            self._poison()
        else:
            self.close()
        return failure

    def _poison(self) -> None:
        for inputs in self._drawn:
            if inputs.draw.is_lean:
                self._judge.load_seed(inputs.draw.draw, 0)
            else:
                self._judge.poison(inputs.draw.draw)


def _written(inputs: DrawnInputs, timed: TimeReply) -> tuple[int, ...]:
    """Return the output slots of calls that were kept, and that of the run before them."""
    call_count = len(timed.samples_ns) + timed.discarded_count
    kept = range(min(keep_count(inputs.draw), call_count))
    return tuple(sorted({*kept, inputs.draw.slot_count - 1}))
