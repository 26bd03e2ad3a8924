"""Stage data flow: do outputs follow when a few elements of the inputs change in place?

After the times are taken, on the addresses that they were taken on: a candidate cannot tell this
call from a timed one.
"""

import dataclasses
from dataclasses import dataclass

from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.locked import CandidateFailure, DoneReply
from evaluator_svc.messages.runner import RunAgainRequest
from evaluator_svc.pipeline.runner_calls import failure_of
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome

_NOTHING = "every input is bound by a structure, or the same under every seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFlowResult:
    """The result of the probe."""

    checks: tuple[Check, ...]
    failure: CandidateFailure | None = None
    has_changed: bool = True
    """Whether any input could be changed."""


def probe_data_flow(
    process: ChildProcess, judge: JudgeClient, draw: Draw, *, seconds: float, is_prepared: bool
) -> DataFlowResult:
    """Change inputs, run the candidate once more and look at its outputs.

    Of a lean draw, which holds one seed, twice: runs of elements, then single ones.

    Args:
        process: The runner, which has taken times on the draw.
        judge: Changes inputs and compares.
        draw: The workload's inputs.
        seconds: What the runs may take.
        is_prepared: Whether the plan has prepared the parameters, which then stay as they are.
    """
    found = _probe(process, judge, draw, seconds=seconds, is_prepared=is_prepared)
    if not draw.is_lean or found.failure is not None or not found.has_changed:
        return found
    second = _probe(process, judge, draw, seconds=seconds, is_prepared=is_prepared, is_second=True)
    return dataclasses.replace(second, checks=(*found.checks, *second.checks))


def _probe(
    process: ChildProcess,
    judge: JudgeClient,
    draw: Draw,
    *,
    seconds: float,
    is_prepared: bool,
    is_second: bool = False,
) -> DataFlowResult:
    seeds = judge.change_inputs(
        draw.draw, with_parameters=not is_prepared, is_second=is_second
    ).seeds
    if not seeds:
        skipped = Check(
            kind=CheckKind.DATA_FLOW,
            result=CheckResult.SKIPPED,
            workload=draw.workload,
            note=_NOTHING,
        )
        return DataFlowResult(checks=(skipped,), has_changed=False)
    answer = ask_candidate(
        process,
        RunAgainRequest(workload=draw.workload, seeds=seeds),
        DoneReply,
        seconds=seconds,
        doing=f"running the kernels on changed inputs of workload {draw.workload}",
    )
    if isinstance(answer, CandidateFailure):
        return DataFlowResult(checks=(), failure=answer)
    verdict = judge.verify_changed(draw.draw, seeds)
    failure = failure_of(verdict, draw.workload)
    if verdict.is_stale:
        failure = CandidateFailure(outcome=EvaluationOutcome.REJECTED, findings=verdict.findings)
    return DataFlowResult(checks=verdict.checks, failure=failure)
