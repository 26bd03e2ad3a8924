"""A sweep: every configuration of one candidate built, verified and raced against the best.

Builders work side by side; one runner tries what they finish. Where kernels run on the host's
cores, both take turns.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextvars import copy_context
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.locked import CandidateFailure, WorkloadNames
from evaluator_svc.messages.plan_findings import is_not_meant
from evaluator_svc.pipeline.memory.memory_plan import memory_plans
from evaluator_svc.pipeline.sweep.builds import (
    BuilderTeam,
    BuiltConfiguration,
    UnbuiltConfiguration,
)
from evaluator_svc.pipeline.sweep.race import Race, with_block
from evaluator_svc.pipeline.sweep.runner import Attempt, SweepRunner
from evaluator_svc.pipeline.timing.measurement import timing_of
from evaluator_svc.settings import usable_cores
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.evaluation import (
    CompileReport,
    EvaluationOutcome,
    Setting,
    WorkloadResult,
    speedup_interval_of,
    speedup_of,
)
from kernel_foundry.domain.finding import errors_first
from kernel_foundry.domain.sweep import (
    Configuration,
    ConfigurationResult,
    ConfigurationTimes,
    ConfigurationTiming,
    SweepRequest,
    Validity,
)

_TURN: Final = 4
"""Configurations that each builder does before the runner's turn, on the host's cores."""
_AHEAD: Final = 512
"""Most configurations that are built and wait for the runner, elsewhere."""
_OTHERS: Final = 2
"""Cores that judge, runner and supervisor need meanwhile."""
_VALIDITY: Final = {
    EvaluationOutcome.PASSED: Validity.CORRECT,
    EvaluationOutcome.REJECTED: Validity.COMPILE,
    EvaluationOutcome.EXTRACTION_FAILED: Validity.COMPILE,
    EvaluationOutcome.COMPILE_ERROR: Validity.COMPILE,
    # A plan that parses and does not bind asks for a launch that the device cannot do.
    EvaluationOutcome.PLAN_ERROR: Validity.RUNTIME,
    EvaluationOutcome.LAUNCH_ERROR: Validity.RUNTIME,
    EvaluationOutcome.CRASHED: Validity.RUNTIME,
    EvaluationOutcome.TIMEOUT: Validity.TIMEOUT,
    EvaluationOutcome.WRONG_RESULT: Validity.CORRECTNESS,
    EvaluationOutcome.NONDETERMINISTIC: Validity.CORRECTNESS,
}

Emit = Callable[[ConfigurationResult], None]
Outcome = BuiltConfiguration | UnbuiltConfiguration


class CandidateSweep:
    """One candidate's configurations on their way; used once.

    Args:
        site: The device.
        request: What is asked.
        admission: The task as the device sees it; admitted.
        emit: Takes each result once it is final.
        stopped: Set when nobody wants more results.
    """

    def __init__(
        self,
        site: DeviceSite,
        request: SweepRequest,
        admission: Admission,
        *,
        emit: Emit,
        stopped: threading.Event,
    ) -> None:
        self._site = site
        self._request = request
        self._emit = emit
        self._stopped = stopped
        # The winner is judged like any candidate, on generated sizes as well.
        admission = admission.without_generated
        self._names = tuple(
            WorkloadNames(workload=w.workload, tensors=w.tensors, scalars=w.scalars)
            for w in admission.workloads
        )
        self._admission = admission
        self._timed = tuple(w for w in admission.workloads if not w.held_out)
        self._team = BuilderTeam(site, request, self._names)
        self._race = Race()
        self._built: dict[int, BuiltConfiguration] = {}
        """Contenders of the race: a new runner has to load them again."""
        self._total = 1
        self._deadline_s = time.monotonic() + request.seconds

    def run(self) -> None:
        """Emit a result for every configuration; raises only for failures of our own."""
        try:
            with self._site.building():
                enumerated = self._team.enumerate()
            if isinstance(enumerated, CandidateFailure):
                self._emit(self._failed((), enumerated, started_s=time.monotonic()))
                return
            self._total = len(enumerated.configurations)
            plans = memory_plans(self._admission, self._site, seed_count=1)
            sizes = [plan.needed_bytes for plan in plans]
            # Before the lock is taken, as by every evaluation.
            with self._site.memory.lease(*sizes) as lease:
                runner = SweepRunner(
                    self._site,
                    self._request,
                    self._admission,
                    self._names,
                    uses_library=enumerated.uses_library,
                    memory=plans[sizes.index(lease.size_bytes)],
                )
                try:
                    for outcome in self._outcomes(enumerated.configurations, runner):
                        self._handle(runner, outcome)
                    self._decide(runner)
                finally:
                    runner.close()
        finally:
            self._team.close()

    def _outcomes(
        self, configurations: tuple[Configuration, ...], runner: SweepRunner
    ) -> Iterator[Outcome]:
        """Yield what the builders finish; ends early when the time is over."""
        cores = usable_cores() - (0 if self._site.shares_cores else _OTHERS)
        builders = max(min(cores, len(configurations)), 1)
        size = _TURN * builders if self._site.shares_cores else _AHEAD
        with ThreadPoolExecutor(builders, thread_name_prefix="sweep-build") as threads:
            for first in range(0, len(configurations), size):
                turn = enumerate(configurations[first : first + size], start=first)
                # In the context of this thread, so that builds see when the call is stopped.
                futures = [
                    threads.submit(copy_context().run, self._build, number, configuration)
                    for number, configuration in turn
                ]
                try:
                    if first == 0 and not self._is_over():
                        with self._site.lock.shared():  # a draw would disturb who takes times
                            runner.open()  # meanwhile
                    yield from self._finished(futures)
                finally:
                    for future in futures:
                        future.cancel()
                if self._is_over():
                    return

    def _finished(self, futures: "list[Future[Outcome | None]]") -> Iterator[Outcome]:
        if self._site.shares_cores:
            wait(futures)
        for future in as_completed(futures):
            outcome = future.result()
            if outcome is not None and not self._is_over():
                yield outcome

    def _build(self, number: int, configuration: Configuration) -> Outcome | None:
        return None if self._is_over() else self._team.build(number, configuration)

    def _is_over(self) -> bool:
        return self._stopped.is_set() or time.monotonic() > self._deadline_s

    def _handle(self, runner: SweepRunner, outcome: Outcome) -> None:
        started_s = time.monotonic()
        if isinstance(outcome, UnbuiltConfiguration):
            self._emit(
                self._failed(
                    outcome.configuration,
                    outcome.failure,
                    started_s=started_s,
                    is_meant=outcome.is_meant,
                    report=outcome.report,
                )
            )
            return
        with self._site.lock.exclusive():
            attempt = runner.attempt(outcome, self._race.incumbent_upper_ns)
        if isinstance(attempt, CandidateFailure):
            self._emit(
                self._failed(
                    outcome.configuration,
                    attempt,
                    started_s=started_s,
                    report=outcome.built.report,
                )
            )
            return
        self._built[outcome.number] = outcome
        result = self._right(outcome, attempt, started_s)
        leads = self._race.would_lead(result)
        self._enter(runner, outcome.number, result, drops=not leads)
        if leads:
            # A new leader is timed again before it eliminates others.
            self._time_again(runner, outcome.number)

    def _enter(
        self, runner: SweepRunner, number: int, result: ConfigurationResult, *, drops: bool = True
    ) -> None:
        out = self._race.enter(number, result, drops=drops)
        for loser, lost in out.items():
            del self._built[loser]
            self._emit(self._final(lost))
        runner.forget(tuple(out))

    def _decide(self, runner: SweepRunner) -> None:
        """Take blocks of samples until one contender is left or all medians are known."""
        while (numbers := self._race.unsettled()) and not self._is_over():
            for number in numbers:
                # Dropped meanwhile, by a better one's new block?
                if self._race.result(number) is not None and not self._is_over():
                    self._time_again(runner, number)
        for result in self._race.contenders():
            self._emit(self._final(result))

    def _time_again(self, runner: SweepRunner, number: int) -> None:
        result = self._race.result(number)
        assert result is not None, "a contender has a result"
        started_s = time.monotonic()
        with self._site.lock.exclusive():
            block = runner.time_again(self._built[number])
        if isinstance(block, CandidateFailure):
            self._race.withdraw(number)
            report = self._built.pop(number).built.report
            self._emit(
                self._failed(result.configuration, block, started_s=started_s, report=report)
            )
            return
        timings = with_block(result.timings, block.timed)
        wall_ms = 1e3 * (time.monotonic() - started_s)
        times = dataclasses.replace(
            result.times,
            benchmark_ms=result.times.benchmark_ms + block.benchmark_ms,
            framework_ms=result.times.framework_ms + max(wall_ms - block.benchmark_ms, 0.0),
        )
        self._enter(runner, number, dataclasses.replace(result, timings=timings, times=times))

    def _right(
        self, outcome: BuiltConfiguration, attempt: Attempt, started_s: float
    ) -> ConfigurationResult:
        report = outcome.built.report
        spent_ms = attempt.load_ms + attempt.verification_ms + attempt.benchmark_ms
        wall_ms = 1e3 * (time.monotonic() - started_s)
        return ConfigurationResult(
            configuration=outcome.configuration,
            validity=Validity.CORRECT,
            outcome=EvaluationOutcome.PASSED,
            times=ConfigurationTimes(
                compile_ms=1e-6 * report.compile_ns,
                load_ms=attempt.load_ms,
                verification_ms=attempt.verification_ms,
                benchmark_ms=attempt.benchmark_ms,
                framework_ms=max(wall_ms - spent_ms, 0.0),
            ),
            timings=tuple(
                ConfigurationTiming(
                    workload=w.workload,
                    timing=timing_of(timed, is_cold=True),
                    weight=self._request.task.weight_of(w.workload),
                )
                for w, timed in zip(self._timed, attempt.timed, strict=True)
            ),
            resources=report.kernels,
            cached=report.cached,
            finished_unix_s=time.time(),
            total=self._total,
        )

    def _final(self, result: ConfigurationResult) -> ConfigurationResult:
        results = tuple(
            WorkloadResult(
                workload=w.workload, timing=t.timing, baselines=w.baselines, weight=t.weight
            )
            for w, t in zip(self._timed, result.timings, strict=True)
        )
        return dataclasses.replace(
            result,
            speedup=speedup_of(results),
            speedup_interval=speedup_interval_of(results),
            finished_unix_s=time.time(),
        )

    def _failed(
        self,
        configuration: tuple[Setting, ...],
        failure: CandidateFailure,
        *,
        started_s: float,
        is_meant: bool = True,
        report: CompileReport | None = None,
    ) -> ConfigurationResult:
        is_meant = is_meant and not any(map(is_not_meant, failure.findings))
        validity = _VALIDITY[failure.outcome] if is_meant else Validity.CONSTRAINTS
        return ConfigurationResult(
            configuration=configuration,
            validity=validity,
            outcome=failure.outcome,
            times=ConfigurationTimes(
                compile_ms=1e-6 * report.compile_ns if report else 0.0,
                framework_ms=1e3 * (time.monotonic() - started_s),
            ),
            findings=errors_first(failure.findings),
            resources=report.kernels if report else (),
            cached=report.cached if report else False,
            finished_unix_s=time.time(),
            total=self._total,
        )
