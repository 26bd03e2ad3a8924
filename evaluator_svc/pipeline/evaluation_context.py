"""Shared by the stages of one evaluation: device, judge, request, task and draft."""

from dataclasses import dataclass
from typing import Protocol

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.pipeline.evaluation_draft import EvaluationDraft
from evaluator_svc.processes.judge_client import JudgeClient
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.attestation import WorkloadSeeds
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task


class JudgedRequest(Protocol):
    """The common part of requests for verdicts, on candidates and on foreign kernels."""

    @property
    def task(self) -> Task:
        """The task that the candidate has to compute."""

    @property
    def limits(self) -> EvaluationLimits:
        """How long it may take."""

    @property
    def seeds(self) -> tuple[WorkloadSeeds, ...]:
        """Seeds of the inputs; workloads that are not named get secret ones."""

    @property
    def fresh_baselines(self) -> bool:
        """Whether baselines are timed beside the candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationContext:
    """The data that every stage of one evaluation may read, and the draft that it writes to."""

    site: DeviceSite
    judge: JudgeClient
    """The process that holds these inputs; one that is started in its place does not."""
    request: JudgedRequest
    admission: Admission
    """The task as the device sees it, without generated workloads."""
    peaks: Peaks
    """The device's measured limits."""
    draft: EvaluationDraft
