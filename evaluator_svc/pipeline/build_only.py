"""A candidate that is built and bound, but never run: for hosts without its device.

One that is also run goes through `evaluate.py`.
"""

from typing import Protocol

from evaluator_svc.messages.locked import CandidateFailure, WorkloadNames
from evaluator_svc.pipeline.build.built_candidate import (
    BuildPlace,
    BuiltCandidate,
    ask_to_bind,
    assess_launches,
    describe,
    launch_facts,
    read_and_build,
)
from evaluator_svc.pipeline.evaluation_draft import draft_of
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.device import IsolationReport
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import EvaluationRequest


class DescribedPlace(BuildPlace, Protocol):
    """Where candidates are built, with somebody who knows the task's names."""

    isolation: IsolationReport

    @property
    def judge(self) -> JudgeClient:
        """Describes tasks."""
        ...


class CandidateBuild:
    """One candidate on its way to object code; used once.

    Args:
        site: Where it is built.
        request: What is asked.
        shapes_alone: Whether to fail where the task's shapes follow from values.
    """

    def __init__(
        self, site: DescribedPlace, request: EvaluationRequest, *, shapes_alone: bool = False
    ) -> None:
        self._site = site
        self._request = request
        self._shapes_alone = shapes_alone
        self._draft = draft_of(request, site.spec.id, baselines_ns={})

    def evaluate(self) -> Evaluation:
        """Return the verdict BUILT, or how it failed.

        Raises:
            TaskInvalidError: the reference cannot be loaded or run on the host.
        """
        task = self._site.judge.describe(self._request.task, shapes_alone=self._shapes_alone)
        with self._site.building(), self._site.builders.taken() as builder:
            built = read_and_build(builder, self._site, self._request, task.workloads, self._draft)
            if isinstance(built, CandidateFailure):
                return self._draft.failed(built)
            failure = self._bind(builder, built, task.workloads, task.reference_op_count)
        self._add_evidence()
        return self._draft.built() if failure is None else self._draft.failed(failure)

    def _bind(
        self,
        builder: ChildProcess,
        built: BuiltCandidate,
        names: tuple[WorkloadNames, ...],
        operator_count: int,
    ) -> CandidateFailure | None:
        with self._draft.stage("bind"):
            bound = ask_to_bind(builder, self._request.task)
        if isinstance(bound, CandidateFailure):
            return bound
        language = self._request.source.language
        refused = assess_launches(built, bound.workloads, names, language, self._draft)
        if refused is not None:
            return refused
        self._draft.launches = launch_facts(bound.workloads[0])
        with self._draft.stage("behaviour"):
            _, self._draft.measures = describe(built, bound.workloads[0], operator_count)
        for workload in bound.workloads:
            self._draft.add_fact(
                f"bound to {workload.workload}",
                f"{workload.launch_count} launches, {workload.library_call_count} library calls, "
                f"{workload.scratch_bytes} bytes of scratch",
            )
        return None

    def _add_evidence(self) -> None:
        site, draft = self._site, self._draft
        draft.add_fact("built for", f"{site.spec.name} ({site.spec.architecture})")
        draft.add_fact("compiler", site.compiler_version)
        draft.add_fact("isolation", ", ".join(site.isolation.mechanisms) or "none")
