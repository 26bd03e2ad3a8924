"""The calls of stages to a runner: load, bind, run, fill the pool, take times."""

import os
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.locked import CandidateFailure, OwnFailure
from evaluator_svc.messages.runner import LoadReply, LoadRequest, RunReply, RunRequest
from evaluator_svc.pipeline.memory.evaluation_memory import EvaluationMemory
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.errors import KernelFoundryError

_LOAD_SECONDS: Final = 30.0
"""Longest load. On a CPU it makes machine code of SPIR-V: 0.1 s for most kernels, more for long."""

_DAMAGE: Final = {
    FindingKind.INPUT_MODIFIED: CheckKind.INPUTS_INTACT,
    FindingKind.STRAY_WRITE: CheckKind.GUARDS_INTACT,
}

LAST_SECONDS: Final = 60.0
"""Longest wait for the end of a killed runner; draws of one that never ends are not used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnInputs:
    """A draw and its shared buffers."""

    draw: Draw
    descriptors: tuple[int, ...]

    def close(self) -> None:
        """Give the supervisor's descriptors back; judge and runner hold their own."""
        for descriptor in self.descriptors:
            os.close(descriptor)


def release_all(
    judge: JudgeClient,
    drawn: "Sequence[Future[DrawnInputs]]",
    runner: ChildProcess | None,
    memory: EvaluationMemory,
) -> None:
    """Give draws back once the runner that had them is dead, and then the memory."""
    try:
        for future in drawn:
            with suppress(KernelFoundryError):  # a judge that is gone holds nothing any more
                release(judge, future, runner)
    finally:
        memory.give_back()


def release(judge: JudgeClient, future: "Future[DrawnInputs]", runner: ChildProcess | None) -> None:
    """Give a draw back once the runner that had it is dead."""
    if future.exception() is None:
        drawn = future.result()
        drawn.close()
        # A driver may take long to end a kernel, and till then it writes into this draw.
        if runner is None or runner.wait(LAST_SECONDS) is not None:
            judge.release(drawn.draw.draw)


def load(
    process: ChildProcess,
    request: LoadRequest,
    codes: tuple[bytes, ...],
    *,
    seconds: float = _LOAD_SECONDS,
    descriptors: tuple[int, ...] = (),
) -> LoadReply | CandidateFailure:
    """Load the object code, bind the plan and run what the request asks for.

    Raises:
        BackendUnavailableError: the runner cannot make the plan's library calls as it must.
    """
    answer: LoadReply | OwnFailure | CandidateFailure = ask_candidate(
        process,
        request,
        LoadReply,
        OwnFailure,
        seconds=seconds,
        doing="running the kernels" if request.runs else "loading the kernels",
        blobs=codes,
        descriptors=descriptors,
    )
    if isinstance(answer, OwnFailure):
        process.kill()
        raise answer.error()
    return answer


def run(
    process: ChildProcess, drawn: DrawnInputs, *, seconds: float, refilled: bool = False
) -> RunReply | CandidateFailure:
    """Run the candidate on every seed of one workload; `refilled` as in `RunRequest`."""
    return ask_candidate(
        process,
        RunRequest(draw=drawn.draw, refilled=refilled),
        RunReply,
        seconds=seconds,
        doing=f"running the kernels on workload {drawn.draw.workload}",
        descriptors=drawn.descriptors,
    )


def damage_checks(failure: CandidateFailure, workload: str) -> tuple[Check, ...]:
    """Return the checks that a runner itself saw fail: what was closed to kernels was written."""
    kinds = {finding.kind for finding in failure.findings}
    return tuple(
        Check(kind=check, result=CheckResult.FAILED, workload=workload, note="seen by the runner")
        for finding, check in _DAMAGE.items()
        if finding in kinds
    )


def failure_of(verdict: RunComparison, workload: str) -> CandidateFailure | None:
    """Return the candidate's failure that a comparison shows; None if the outputs are right."""
    if verdict.inputs_modified:
        names = ", ".join(verdict.inputs_modified)
        finding = Finding(
            kind=FindingKind.INPUT_MODIFIED,
            severity=Severity.ERROR,
            message=f"the kernels changed their inputs on workload {workload}: {names}",
            hint="write only to outputs and scratch",
        )
        findings = verdict.findings
        if not any(f.kind is FindingKind.INPUT_MODIFIED for f in findings):
            findings = (finding, *findings)
        return CandidateFailure(outcome=EvaluationOutcome.WRONG_RESULT, findings=findings)
    if verdict.is_wrong or verdict.stray_writes:
        return CandidateFailure(outcome=EvaluationOutcome.WRONG_RESULT, findings=verdict.findings)
    if verdict.is_nondeterministic:
        return CandidateFailure(
            outcome=EvaluationOutcome.NONDETERMINISTIC, findings=verdict.findings
        )
    return None
