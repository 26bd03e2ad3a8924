"""Stages parse, policy and build: a candidate to object code, in a builder.

`inspect.py` has the reports on object code.
"""

from dataclasses import dataclass
from typing import Final

from evaluator_svc.cache.object_cache import BuiltUnit, ObjectCache, object_key
from evaluator_svc.messages.builder import (
    LOG_CHARACTERS,
    CompileReply,
    CompileRequest,
    ReadCandidateReply,
    ReadCandidateRequest,
)
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.object_report import ObjectReport
from evaluator_svc.messages.plausible import bounded
from evaluator_svc.processes.ask_candidate import ask_candidate, ask_for_blobs
from evaluator_svc.processes.process import ChildProcess, ProcessEnd
from evaluator_svc.processes.time_limit import OwnTimer
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import CompileReport, EvaluationOutcome
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_READ_SECONDS: Final = 10.0
"""Reading a text takes milliseconds; the language's own limits end odd ones."""
_MEMORY_SHARE: Final = 0.6
"""A compiler that died after it had used this share of its memory died of its limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
    """The parameters of a build."""

    device: DeviceSpec
    compiler_version: str
    seconds: float
    """Deadline of all units together."""
    memory_bytes: int
    """Memory limit of the builder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """Every unit's object code."""

    units: tuple[BuiltUnit, ...]
    keys: tuple[str, ...]
    """Key of each unit's entry in the cache."""
    report: CompileReport
    left_out: frozenset[int] = frozenset()
    """Units of optional workloads alone that did not build; the first unit's code is in their
    place."""

    @property
    def codes(self) -> tuple[bytes, ...]:
        """Object code of each unit."""
        return tuple(unit.code for unit in self.units)

    @property
    def reports(self) -> tuple[ObjectReport, ...]:
        """Report on each unit that an inspector has read."""
        return tuple(unit.report for unit in self.units if unit.report is not None)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the policy's rules in the units, each once."""
        return tuple(dict.fromkeys(f for report in self.reports for f in report.findings))


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFailure:
    """A unit that did not build."""

    failure: CandidateFailure
    report: CompileReport
    is_meant: bool = True
    """False: a `static_assert` failed, so this configuration is not meant."""


def read_candidate(
    process: ChildProcess, request: ReadCandidateRequest
) -> ReadCandidateReply | CandidateFailure:
    """Read the candidate in a builder."""
    return ask_candidate(
        process, request, ReadCandidateReply, seconds=_READ_SECONDS, doing="reading the candidate"
    )


def build(
    process: ChildProcess,
    parsed: ReadCandidateReply,
    cache: ObjectCache,
    settings: BuildSettings,
    *,
    optional: frozenset[int] = frozenset(),
    spare: tuple[int, ...] = (),
) -> BuildResult | BuildFailure:
    """Build the units that the cache lacks; remember what came out, failures too.

    `optional` units come last and may fail to compile or take too long. `spare` ones are optional
    too, and built one after the other only until an optional one is there.
    """
    left_seconds = settings.seconds
    units: list[BuiltUnit] = []
    keys: list[str] = []
    left_out: set[int] = set()
    cached, is_lost = True, False
    spent_ns = 0.0
    for index, unit in enumerate(parsed.units):
        key = object_key(unit, settings.device, settings.compiler_version)
        keys.append(key)
        is_needless = index in spare and bool(optional.intersection(range(index)) - left_out)
        found = None if is_needless else cache.get(key)
        if is_needless or (found is None and is_lost):
            left_out.add(index)
            units.append(units[0])
            continue
        if found is None:
            cached = False
            timer = OwnTimer(process.process_id)
            built = _compile(process, index, max(left_seconds, 0.01), settings)
            left_seconds -= timer.seconds()
            if isinstance(built, CandidateFailure):
                if index not in optional:
                    return BuildFailure(failure=built, report=_report("", spent_ns, False, 0))
                is_lost = True  # it took too long, or the compiler died
                left_out.add(index)
                units.append(units[0])
                continue
            spent_ns += built.build_ns
            cache.put(key, built)
            found = built
        if not found.succeeded and index in optional:
            left_out.add(index)
            found = units[0]
        units.append(found)
        if not found.succeeded:
            log = found.log[-LOG_CHARACTERS:]
            return BuildFailure(
                failure=CandidateFailure(
                    outcome=EvaluationOutcome.COMPILE_ERROR, findings=found.findings
                ),
                report=_report(log, spent_ns, cached, 0),
                is_meant=found.is_meant,
            )
    log = "\n".join(u.log for u in units if u.log)[-LOG_CHARACTERS:]
    return BuildResult(
        units=tuple(units),
        keys=tuple(keys),
        report=_report(log, spent_ns, cached, sum(len(u.code) for u in units)),
        left_out=frozenset(left_out),
    )


def is_refused(findings: tuple[Finding, ...]) -> bool:
    """Return whether a candidate with these findings goes no further."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def _compile(
    process: ChildProcess, unit: int, seconds: float, settings: BuildSettings
) -> BuiltUnit | CandidateFailure:
    answer = ask_for_blobs(
        process,
        CompileRequest(unit=unit),
        CompileReply,
        seconds=seconds,
        doing="building the device code",
        late_hint="unroll less and instantiate fewer templates, or allow the compiler more time "
        "(--build-seconds), which all values of CONST share",
    )
    if isinstance(answer, CandidateFailure):
        if answer.outcome is EvaluationOutcome.CRASHED:
            return _compiler_died(process.wait(0.0), settings.memory_bytes)
        return answer
    compiled: CompileReply = answer.message
    code, assembly = b"", b""
    if compiled.succeeded and answer.blobs:
        code, assembly = answer.blobs[0], b"".join(answer.blobs[1:2])
    return BuiltUnit(
        code=code,
        assembly=assembly,
        log=compiled.log,
        build_ns=compiled.build_ns,
        findings=bounded(compiled.findings),
        is_meant=compiled.is_meant,
    )


def _compiler_died(end: ProcessEnd | None, memory_bytes: int) -> CandidateFailure:
    """A compiler that dies of a candidate's code is a COMPILE_ERROR, not a crash."""
    how = "it ended" if end is None else end.describe()
    if end is not None and end.peak_memory_bytes > _MEMORY_SHARE * memory_bytes:
        finding = Finding(
            kind=FindingKind.MEMORY_LIMIT,
            severity=Severity.ERROR,
            message=f"the compiler needed more than {memory_bytes >> 20} MiB",
            evidence=(Figure(name="peak_memory_bytes", value=float(end.peak_memory_bytes)),),
            hint="fewer template instantiations, smaller constant tables",
        )
    else:
        finding = Finding(
            kind=FindingKind.COMPILE_ERROR,
            severity=Severity.ERROR,
            message=f"the compiler died on this code: {how}",
            hint="simplify what was added last: deep templates or macros, long unrolled loops, "
            "very large tables",
        )
    return CandidateFailure(outcome=EvaluationOutcome.COMPILE_ERROR, findings=(finding,))


def _report(log: str, spent_ns: float, cached: bool, size: int) -> CompileReport:
    return CompileReport(
        log=log, compile_ns=0.0 if cached else spent_ns, cached=cached, object_bytes=size
    )
