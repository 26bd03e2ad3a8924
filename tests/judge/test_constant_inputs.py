"""Inputs that are alike under every seed: changed, named, or constants of the task."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.domain.finding import FindingKind, Severity
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import TaskInvalidError
from tests.judge.judge_tasks import RunnerSide, make_task, prepare

Draw = Callable[..., RunnerSide]

MIXED = """
def forward(self, x, mix):
    return torch.softmax(x, dim=-1) + mix
"""
WAVES = "torch.arange(cols).float().mul(1.7).sin()"
"""In no order, so that single values may change."""
STEPS = "torch.arange(cols).float()"
"""Sorted, which new values would break, and whole numbers, which have no mantissas to change."""
RAMP = "torch.linspace(-1.0, 1.0, cols)"
"""Sorted; a last place may change."""


def _task(mix: str, *constants: str) -> Task:
    task = make_task(MIXED, inputs=f"[torch.randn(rows, cols), {mix}]")
    return replace(task, constants=constants)


def _as_in_the_file(mix: str) -> torch.Tensor:
    values = {
        WAVES: torch.arange(70).float().mul(1.7).sin(),
        STEPS: torch.arange(70).float(),
        RAMP: torch.linspace(-1.0, 1.0, 70),
    }
    return values[mix]


def _softmax_plus(x: torch.Tensor, mix: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1) + mix


def _known_by_heart(mix: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a kernel that never reads its second input."""
    return lambda x: _softmax_plus(x, _as_in_the_file(mix).to(x.device))


def test_what_never_changes_is_changed_between_seeds(drawn: Draw, judge: Judge) -> None:
    runner = drawn(_task(WAVES))
    first, *others = [runner.tensor("mix", seed=seed).cpu() for seed in range(3)]
    assert not torch.equal(first, _as_in_the_file(WAVES))
    assert all(float((first - other).abs().max()) > 0.1 for other in others)
    runner.run(_softmax_plus, "x", "mix")
    honest = judge.verify(runner.draw.draw)
    assert not honest.is_wrong
    assert honest.findings == ()


@pytest.mark.parametrize("mix", [WAVES, RAMP])
def test_who_never_reads_it_is_wrong(drawn: Draw, judge: Judge, mix: str) -> None:
    """So there is nothing to name, even where only the mantissas change."""
    runner = drawn(_task(mix))
    assert judge._draws[runner.draw.draw].unchanged_inputs == ()
    runner.run(_known_by_heart(mix), "x")
    assert judge.verify(runner.draw.draw).is_wrong


def test_constants_of_the_task_never_change(drawn: Draw, judge: Judge) -> None:
    """A kernel may rely on them, and the verdict has nothing to name."""
    runner = drawn(_task(WAVES, "mix"))
    draw = judge._draws[runner.draw.draw]
    assert (bool(draw.redrawn[0]), bool(draw.redrawn[1])) == (True, False)
    for seed in range(3):
        # A GPU's sine differs from the host's in last places.
        torch.testing.assert_close(runner.tensor("mix", seed=seed).cpu(), _as_in_the_file(WAVES))
        assert torch.equal(runner.tensor("mix", seed=seed), runner.tensor("mix", seed=0))
    runner.run(_known_by_heart(WAVES), "x")
    verdict = judge.verify(runner.draw.draw)
    assert not verdict.is_wrong
    assert verdict.findings == ()


def test_what_cannot_change_is_named_unless_it_is_a_constant(drawn: Draw, judge: Judge) -> None:
    named = drawn(_task(STEPS))
    named.run(_known_by_heart(STEPS), "x")
    verdict = judge.verify(named.draw.draw)
    assert not verdict.is_wrong
    (finding,) = verdict.findings
    assert (finding.kind, finding.severity) == (FindingKind.DATA_FLOW, Severity.WARNING)
    assert "mix never changed" in finding.message
    assert "constants: [mix]" in finding.hint
    declared = drawn(_task(STEPS, "mix"))
    declared.run(_known_by_heart(STEPS), "x")
    assert judge.verify(declared.draw.draw).findings == ()


@pytest.mark.parametrize("distribution", [Distribution.LARGE, Distribution.OFFSET])
def test_unusual_ranges_leave_constants_alone(distribution: Distribution) -> None:
    tables = []
    for constants in ((), ("mix",)):
        task = _task(WAVES, *constants)
        prepared = prepare(task)
        ordinary = prepared.input_set(5)
        unusual = with_distribution(prepared, ordinary, distribution)
        assert not torch.equal(unusual.inputs[0], ordinary.inputs[0])
        tables.append(torch.equal(unusual.inputs[1], ordinary.inputs[1]))
    assert tables == [False, True]


def test_a_constant_that_is_no_input_is_refused(judge: Judge) -> None:
    task = _task(WAVES, "weights")
    with pytest.raises(
        TaskInvalidError, match=r"no input, parameter or buffer 'weights'; there are x, mix"
    ):
        judge.draw(task, task.workloads[0].name, None, (1, 2, 3))


def test_constants_are_part_of_what_is_signed_for() -> None:
    """Records of both are of different tasks."""
    assert _task(WAVES).digest != _task(WAVES, "mix").digest
