"""Stage tools: the vendor's own look at a candidate that failed, leads or is measured afresh.

A candidate is run once more for it, outside its evaluation.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_svc import tools
from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.runner import LoadRequest
from evaluator_svc.sandbox.host_paths import PASSED_ON, own_variables, package_root
from evaluator_svc.tools import rerun_folder
from evaluator_svc.tools.sanitizer import Inspection
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding
from kernel_foundry.scratch import scratch_folder

_CHECKS: Final = {
    EvaluationOutcome.CRASHED: tools.SanitizerTool.MEMORY,
    EvaluationOutcome.NONDETERMINISTIC: tools.SanitizerTool.RACES,
}
"""The tool for each failure that a tool can explain."""
_TOOL_VARIABLES: Final = ("PATH", "HOME", "TMPDIR", "LANG", *PASSED_ON)
"""The tools look for themselves and for a place to write; no key or token is among these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """A loaded candidate as it can be run again."""

    load: LoadRequest
    codes: tuple[bytes, ...]


def explain_failure(rerun: Rerun, draw: Draw, failure: CandidateFailure) -> tuple[Finding, ...]:
    """Return a tool's findings on a failed candidate; empty if no tool can examine it."""
    check = _CHECKS.get(failure.outcome)
    if check is None:
        return ()
    sizes = {slot.name: slot.size_bytes for slot in draw.slots}
    with _command(rerun, draw) as (command, environment):
        return tools.sanitize(command, environment, check=check, tensor_bytes=sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SanitizerResult:
    """The sanitizers' results on a candidate that has passed so far."""

    checks: tuple[Check, ...]
    failure: CandidateFailure | None = None


_SANITIZERS: Final = {
    tools.SanitizerTool.MEMORY: EvaluationOutcome.CRASHED,
    tools.SanitizerTool.RACES: EvaluationOutcome.NONDETERMINISTIC,
    tools.SanitizerTool.BARRIERS: EvaluationOutcome.NONDETERMINISTIC,
    tools.SanitizerTool.UNINITIALIZED: EvaluationOutcome.WRONG_RESULT,
}
"""Every sanitizer that a promoted candidate is run under, and what becomes of it by an error:
accesses outside of memory, work-items that do not wait for each other, barriers that some of them
do not reach, values that nobody wrote."""
_SECONDS: Final = 60.0
"""Longest run of each sanitizer."""
SANITIZED_BYTES: Final = 256 << 20
"""Of a workload on which each sanitizer ends within seconds, and all of them may hold a copy at
once: one that instruments every access takes minutes for gigabytes."""


def sanitized(rerun: Rerun | None, draw: Draw) -> SanitizerResult:
    """Run a workload's kernels under each sanitizer; what is told ends with the first error.

    Args:
        rerun: None where no tool can look at the candidate, which the check says.
        draw: The workload's tensors.
    """
    if rerun is None:
        why = "no sanitizer for this device, or for plans with library calls"
        return SanitizerResult(checks=(_sanitizer_check(CheckResult.SKIPPED, draw, why),))
    sizes = {slot.name: slot.size_bytes for slot in draw.slots}

    def inspected(kind: tools.SanitizerTool) -> Inspection:
        with _command(rerun, draw) as (command, environment):
            return tools.inspect(
                command, environment, check=kind, seconds=_SECONDS, tensor_bytes=sizes
            )

    at_once = len(_SANITIZERS) if sum(sizes.values()) <= SANITIZED_BYTES else 1
    with ThreadPoolExecutor(at_once) as pool:
        # In the context of this thread, so that they see when the call is stopped.
        runs = [pool.submit(copy_context().run, inspected, kind) for kind in _SANITIZERS]
        found = [run.result() for run in runs]
    checks: list[Check] = []
    for kind, inspection in zip(_SANITIZERS, found, strict=True):
        said = inspection.findings
        if inspection.has_errors:
            checks.append(_sanitizer_check(CheckResult.FAILED, draw, said[0].message))
            failure = CandidateFailure(outcome=_SANITIZERS[kind], findings=said)
            return SanitizerResult(checks=tuple(checks), failure=failure)
        result = CheckResult.PASSED if inspection.is_complete else CheckResult.SKIPPED
        checks.append(_sanitizer_check(result, draw, said[0].message))
    return SanitizerResult(checks=tuple(checks))


def _sanitizer_check(result: CheckResult, draw: Draw, note: str) -> Check:
    return Check(kind=CheckKind.SANITIZER, result=result, workload=draw.workload, note=note)


def profiled(rerun: Rerun, draw: Draw, *, seconds: float) -> tools.ProfilerResult:
    """Return the profiler's measurements of a workload's kernels, within `seconds`."""
    with _command(rerun, draw, is_profiled=True) as (command, environment):
        return tools.profile(command, environment, seconds=seconds)


@contextmanager
def _command(
    rerun: Rerun, draw: Draw, *, is_profiled: bool = False
) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    with scratch_folder("tools") as name:
        folder = Path(name)
        rerun_folder.write(
            folder, rerun_folder.RerunInput(load=rerun.load, codes=rerun.codes, draw=draw)
        )
        command = tools.rerun_command(folder, is_profiled=is_profiled)
        yield command, {**own_variables(_TOOL_VARIABLES), "PYTHONPATH": package_root()}
