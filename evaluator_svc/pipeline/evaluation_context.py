"""Shared by the stages of one evaluation: device, judge, request, task and draft."""

from dataclasses import dataclass

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.pipeline.evaluation_draft import EvaluationDraft
from evaluator_svc.processes.judge_client import JudgeClient
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.request import EvaluationRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationContext:
    """What every stage of one evaluation may read, and the draft that it writes to."""

    site: DeviceSite
    judge: JudgeClient
    """The process that holds these inputs; one that is started in its place does not."""
    request: EvaluationRequest
    admission: Admission
    """The task as the device sees it, without generated workloads."""
    peaks: Peaks
    """The device's measured limits."""
    draft: EvaluationDraft
