"""The probes' CUDA kernels build without a GPU, and on one all of them pass."""

import asyncio
import dataclasses
from collections.abc import Callable

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.probing import device_task as known
from evaluator_svc.probing.timer_kernels import SPINS_NS, TIMER_KERNELS
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task

BODIES = (
    known.RIGHT,
    known.UNWRITTEN_END,
    known.WRONG_IN_PLACES,
    known.ENDLESS,
    known.STRAY,
)


@pytest.fixture(scope="module")
def builder(local_evaluator: Callable[[str], LocalEvaluator]) -> LocalEvaluator:
    """An evaluator without any device."""
    return local_evaluator("")


def _outcome(builder: LocalEvaluator, task: Task, source: KernelSource) -> EvaluationOutcome:
    request = EvaluationRequest(
        task=task, device="", source=source, build_only=True, architecture="sm_90"
    )
    return asyncio.run(builder.evaluate(request)).outcome


@pytest.mark.parametrize("body", BODIES)
def test_a_device_probes_candidate_builds(builder: LocalEvaluator, body: str) -> None:
    source = known.candidate(Language.CUDA, body)
    assert _outcome(builder, known.TASK, source) is EvaluationOutcome.BUILT


@pytest.mark.parametrize("probe", ["chain_1", "copy", *SPINS_NS])
def test_a_timers_kernel_builds(builder: LocalEvaluator, probe: str) -> None:
    init = f"    def __init__(self):\n        super().__init__()\n        self.probe = {probe!r}\n"
    reference = known.TASK.reference.replace("    def forward", f"{init}\n    def forward")
    task = dataclasses.replace(known.TASK, reference=reference)
    assert _outcome(builder, task, TIMER_KERNELS[Language.CUDA]) is EvaluationOutcome.BUILT


@pytest.mark.gpu
def test_every_probe_passes_on_a_gpu(local_evaluator: Callable[[str], LocalEvaluator]) -> None:
    """What the timer's probes say depends on the host's other work: they are only held."""
    probes = asyncio.run(local_evaluator("cuda").probe("cuda:0"))
    failed = [probe for probe in probes if not probe.passed]
    assert [f"{p.name}: {p.detail}" for p in failed if not p.name.startswith("timer.")] == []
    assert "timer.known_duration" in {probe.name for probe in probes}
