"""Cases on disk, and an evaluator that says of each what its code asks it to say."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.errors import BackendUnavailableError, TaskRefusedError
from kernel_foundry.testing.evaluator import FakeEvaluator

TASK = """
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return []
def get_init_inputs():
    return []
"""


def candidate(script: str, *, language: str = "sycl") -> str:
    """Return a candidate's text that asks for a verdict: "rejected", "passed speedup=2" …."""
    plan = "```python\ndef launch():\n    k[1, 1]()\n```\n"
    return f"```{language}\n// {script}\nvoid k() {{}}\n```\n\n{plan}"


def write_cases(
    folder: Path, expected: Mapping[str, Any], texts: Mapping[str, str], *tasks: str
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in tasks:
        (folder / f"{name}.py").write_text(TASK)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    (folder / "expected.json").write_text(json.dumps(expected))
    return folder


class ScriptedEvaluator(FakeEvaluator):
    """Judges by the first line of the device code, a comment.

    It holds an outcome, or "refuse" (the task), "bug" (of ours) or "no_compiler", and then pairs:
    finding, rule, trust, speedup.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[EvaluationRequest] = []

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        self.requests.append(request)
        word, *pairs = request.source.device_code.partition("\n")[0].split()[1:]
        if word == "refuse":
            raise TaskRefusedError("the task is not admitted: too slow")
        if word == "bug":
            raise ValueError("one of ours")
        if word == "no_compiler":
            raise BackendUnavailableError("NVRTC is missing")
        told = dict(pair.split("=") for pair in pairs)
        outcome = EvaluationOutcome(word)
        if outcome is EvaluationOutcome.PASSED:
            return await self._passed(request, told)
        finding = Finding(
            kind=FindingKind(told.get("finding", "policy")),
            severity=Severity.ERROR,
            message="because of a reason",
            rule=told.get("rule", ""),
        )
        return Evaluation(
            candidate="c",
            task=request.task.digest,
            device="fake:0",
            outcome=outcome,
            findings=(finding,),
        )

    async def _passed(self, request: EvaluationRequest, told: Mapping[str, str]) -> Evaluation:
        evaluation = await super().evaluate(dataclasses.replace(request, device=""))
        faster = float(told.get("speedup", "1"))
        results = []
        for result in evaluation.workloads:
            assert result.timing is not None
            median_ns = result.baselines[0].timing.median_ns / faster
            timing = dataclasses.replace(result.timing, median_ns=median_ns)
            results.append(dataclasses.replace(result, timing=timing))
        return dataclasses.replace(
            evaluation, workloads=tuple(results), trust=Trust(told.get("trust", "full"))
        )
