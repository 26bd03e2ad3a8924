"""Verdicts on texts that hold no candidate, made where the text is read: no evaluator is asked.

`plan/candidate_text.py` reads texts.
"""

import time

from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.sweep import ConfigurationResult, ConfigurationTimes, Validity
from kernel_foundry.domain.task import Task


def unreadable_candidate(digest: str, why: str, task: Task, device: str) -> Evaluation:
    """Return the verdict EXTRACTION_FAILED.

    Args:
        digest: Of the text.
        why: What is wrong with the text.
        task: What the candidate was meant for.
        device: As it was asked for.
    """
    return Evaluation(
        candidate=digest,
        task=task.digest,
        device=device,
        outcome=EvaluationOutcome.EXTRACTION_FAILED,
        findings=(_finding(why),),
    )


def unreadable_sweep(why: str) -> ConfigurationResult:
    """Return the only result of a sweep of a text without a candidate."""
    return ConfigurationResult(
        configuration=(),
        validity=Validity.COMPILE,
        outcome=EvaluationOutcome.EXTRACTION_FAILED,
        times=ConfigurationTimes(),
        findings=(_finding(why),),
        finished_unix_s=time.time(),
        total=1,
    )


def _finding(why: str) -> Finding:
    return Finding(kind=FindingKind.EXTRACTION, severity=Severity.ERROR, message=why)
