"""Configurations to object code, in several builders side by side."""

import queue
from dataclasses import dataclass
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.builder import (
    EnumerateReply,
    EnumerateRequest,
    ReadCandidateReply,
    ReadCandidateRequest,
)
from evaluator_svc.messages.locked import CandidateFailure, WorkloadNames
from evaluator_svc.pipeline.build.build import (
    BuildFailure,
    BuildResult,
    BuildSettings,
    build,
    is_refused,
    read_candidate,
)
from evaluator_svc.pipeline.build.inspect import inspect_units
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.candidate_inspectors import CandidateInspectors
from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.settings import usable_cores
from kernel_foundry.domain.evaluation import CompileReport, EvaluationOutcome, Setting
from kernel_foundry.domain.sweep import Configuration, SweepRequest

_ENUMERATE_SECONDS: Final = 20.0
"""Beyond what the builder allows itself."""
_BUILDERS_OF_AN_INSPECTOR: Final = 4
"""Reading object code takes a fraction of its build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltConfiguration:
    """A configuration that can be tried."""

    number: int
    configuration: tuple[Setting, ...]
    parsed: ReadCandidateReply
    built: BuildResult


@dataclass(frozen=True, slots=True, kw_only=True)
class UnbuiltConfiguration:
    """A configuration that goes no further."""

    number: int
    configuration: tuple[Setting, ...]
    failure: CandidateFailure
    is_meant: bool
    """False: a `static_assert` failed."""
    report: CompileReport | None


class BuilderTeam:
    """Builders and inspectors that are used for one configuration after the other.

    Args:
        site: The device to build for.
        request: The sweep.
        names: What the plan may name in each workload.
    """

    def __init__(
        self, site: DeviceSite, request: SweepRequest, names: tuple[WorkloadNames, ...]
    ) -> None:
        self._site = site
        self._request = request
        self._names = names
        self._idle: queue.SimpleQueue[ChildProcess] = queue.SimpleQueue()
        self._settings = BuildSettings(
            device=site.spec,
            compiler_version=site.compiler_version,
            seconds=request.limits.build_seconds,
            memory_bytes=site.settings.builder_memory_bytes,
        )
        self._inspectors = CandidateInspectors(
            site.inspectors, max(usable_cores() // _BUILDERS_OF_AN_INSPECTOR, 1)
        )

    def enumerate(self) -> EnumerateReply | CandidateFailure:
        """Return the configurations to try, or the candidate's failure."""
        request = EnumerateRequest(
            source=self._request.source,
            device=self._site.spec,
            workloads=self._names,
            order=self._request.order,
            most=max(self._request.max_configurations, 1),
        )
        builder = self._site.builders.take()
        try:
            return ask_candidate(
                builder,
                request,
                EnumerateReply,
                seconds=_ENUMERATE_SECONDS,
                doing="reading the candidate",
            )
        finally:
            self._give(builder)

    def build(
        self, number: int, configuration: Configuration
    ) -> BuiltConfiguration | UnbuiltConfiguration:
        """Build one configuration; called from several threads."""
        with self._site.building():
            builder = self._take()
            try:
                return self._build(builder, number, configuration.settings)
            finally:
                self._give(builder)

    def close(self) -> None:
        """End every builder and inspector. No build is under way any more."""
        self._inspectors.close()
        while not self._idle.empty():
            self._idle.get().kill()

    def _build(
        self, builder: ChildProcess, number: int, configuration: tuple[Setting, ...]
    ) -> BuiltConfiguration | UnbuiltConfiguration:
        def unbuilt(
            failure: CandidateFailure, *, is_meant: bool = True, report: CompileReport | None
        ) -> UnbuiltConfiguration:
            return UnbuiltConfiguration(
                number=number,
                configuration=configuration,
                failure=failure,
                is_meant=is_meant,
                report=report,
            )

        asked = ReadCandidateRequest(
            source=self._request.source,
            configuration=configuration,
            device=self._site.spec,
            workloads=self._names,
        )
        parsed = read_candidate(builder, asked)
        if isinstance(parsed, CandidateFailure):
            return unbuilt(parsed, report=None)
        built = build(builder, parsed, self._site.objects, self._settings)
        if isinstance(built, BuildFailure):
            return unbuilt(built.failure, is_meant=built.is_meant, report=built.report)
        if not self._site.spec.id.startswith("null:"):
            inspected = inspect_units(
                self._inspectors, built, parsed, asked.source.language, self._site.objects
            )
            if isinstance(inspected, CandidateFailure):
                return unbuilt(inspected, report=built.report)
            built, findings = inspected, inspected.findings
            if is_refused(findings):
                refused = CandidateFailure(outcome=EvaluationOutcome.REJECTED, findings=findings)
                return unbuilt(refused, report=built.report)
        return BuiltConfiguration(
            number=number, configuration=configuration, parsed=parsed, built=built
        )

    def _take(self) -> ChildProcess:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._site.builders.start_another()

    def _give(self, builder: ChildProcess) -> None:
        if builder.is_running:
            self._idle.put(builder)
        else:
            builder.kill()
