"""Lean draws: one seed after the other in one buffer, with the verdicts of any other draw."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.comparison import precision
from evaluator_svc.judge.comparison.digest import Digester
from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.draw import RUN_COUNT
from evaluator_svc.messages.measurement import KeptOutput
from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError
from tests.judge.judge_tasks import EACH_MEMORY, SOFTMAX, TOLERANCE, RunnerSide, make_task

pytestmark = pytest.mark.parametrize("judge", EACH_MEMORY, indirect=True)

SEEDS = (21, 22, 23)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


class LeanRunner:
    def __init__(self, judge: Judge, task: Task) -> None:
        self.judge = judge
        message, descriptors = judge.draw(
            task, task.workloads[0].name, TOLERANCE, SEEDS, is_lean=True
        )
        self.handle = message.draw
        self.side = RunnerSide(judge, message, descriptors)

    def verify(self, kernel: Callable[..., torch.Tensor], *names: str) -> RunComparison:
        """Run all seeds as an evaluation does; return the last verdict, or the first wrong one."""
        for seed in reversed(range(len(SEEDS))):
            self.judge.load_seed(self.handle, seed)
            for _ in range(RUN_COUNT):
                self.judge.poison(self.handle)
                self.side.run(kernel, *(names or ("x",)))
                verdict = self.judge.verify(self.handle)
                if verdict.is_wrong or verdict.is_nondeterministic:
                    return verdict
        return verdict


@pytest.fixture(params=[False, True], ids=["copies", "buffer"], autouse=True)
def rests(request: pytest.FixtureRequest, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference runs on copies as on a CPU, or on the buffer as on a GPU."""
    monkeypatch.setattr(type(judge._memory), "rests_between_runs", request.param)


@pytest.fixture
def lean(judge: Judge) -> Iterator[Callable[[Task], LeanRunner]]:
    made: list[LeanRunner] = []

    def make(task: Task) -> LeanRunner:
        made.append(LeanRunner(judge, task))
        return made[-1]

    yield make
    for runner in made:
        judge.release(runner.handle)


Make = Callable[[Task], LeanRunner]


def test_nothing_expected_is_held_after_a_decoy_by_the_tasks_check(
    judge: Judge, lean: Make
) -> None:
    """Or it would lie there while the candidate runs."""
    task = make_task(SOFTMAX)
    text = f"{task.reference}\n\ndef looked_at(inputs, expected, actual):\n    return True\n"
    runner = lean(replace(task, reference=text, check="looked_at", compare=False))
    draw = judge._draws[runner.handle]
    draw.drop_copies()
    judge.verify_decoy(runner.handle)
    assert not draw._expected
    assert not draw._sets


def test_a_right_candidate_passes_every_check(lean: Make) -> None:
    verdict = lean(make_task(SOFTMAX)).verify(softmax)

    assert not verdict.is_wrong
    assert verdict.correctness.seed_count == len(SEEDS)
    assert verdict.correctness.run_count == RUN_COUNT
    assert verdict.correctness.element_count == len(SEEDS) * 33 * 70
    assert verdict.correctness.bitwise_reproducible
    assert {check.result for check in verdict.checks} == {CheckResult.PASSED}


def test_the_buffer_has_one_slot_and_the_judge_keeps_nothing(lean: Make, judge: Judge) -> None:
    runner = lean(make_task(SOFTMAX))
    draw = judge._draws[runner.handle]

    assert (runner.side.draw.seed_count, runner.side.draw.slot_count) == (1, 1)
    assert runner.side.draw.is_lean
    runner.verify(softmax)
    assert not draw._sets
    assert not draw._expected
    assert len(draw.timed_sets()) == 1
    assert not draw._sets


def test_a_seed_has_the_inputs_that_it_has_in_any_other_draw(lean: Make, judge: Judge) -> None:
    task = make_task(SOFTMAX)
    runner = lean(task)
    message, descriptors = judge.draw(task, task.workloads[0].name, TOLERANCE, SEEDS)
    full = RunnerSide(judge, message, descriptors)

    for seed in range(len(SEEDS)):
        judge.load_seed(runner.handle, seed)
        assert torch.equal(runner.side.tensor("x", seed=0), full.tensor("x", seed=seed))
    judge.release(message.draw)


def test_constants_of_the_file_stay_what_they_are(lean: Make, judge: Judge) -> None:
    constant = "TABLE = torch.linspace(-3.0, 4.0, rows * cols).reshape(rows, cols).sin()"
    task = make_task(SOFTMAX.replace("self, x", "self, x, y").replace("(x,", "(x + y,"))
    reference = task.reference.replace("class Model", f"{constant}\n\n\nclass Model")
    reference = reference.replace("[torch.randn(rows, cols)]", "[torch.randn(rows, cols), TABLE]")
    runner = lean(replace(task, reference=reference))
    draw = judge._draws[runner.handle]

    def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return softmax(x + y)

    # What is copied to another device is a draw's own; where it lies it stays the file's.
    assert draw.prepared.own_inputs == (True, judge._memory.torch_device.type != "cpu")
    assert not runner.verify(added, "x", "y").is_wrong
    seeds = judge.change_inputs(runner.handle, with_parameters=True).seeds
    runner.side.run(added, "x", "y")
    assert not judge.verify_changed(runner.handle, seeds).is_wrong
    assert torch.equal(draw.prepared.input_set(1).inputs[1], draw.prepared.input_set(2).inputs[1])


def test_outputs_of_another_seed_are_wrong(lean: Make) -> None:
    first: list[torch.Tensor] = []

    def stored(x: torch.Tensor) -> torch.Tensor:
        first.append(softmax(x))
        return first[0]

    verdict = lean(make_task(SOFTMAX)).verify(stored)

    assert verdict.is_wrong
    assert verdict.correctness.seed_count == 2


def test_a_run_that_differs_in_the_last_bits_is_told(lean: Make) -> None:
    calls = iter(range(100))

    def noisy(x: torch.Tensor) -> torch.Tensor:
        return softmax(x) * (1 + 2e-7 * (next(calls) % RUN_COUNT))

    verdict = lean(make_task(SOFTMAX)).verify(noisy)

    assert not verdict.is_wrong
    assert not verdict.correctness.bitwise_reproducible
    assert FindingKind.NONDETERMINISM in {finding.kind for finding in verdict.findings}


def test_a_run_that_is_wrong_once_is_nondeterministic(lean: Make) -> None:
    calls = iter(range(100))

    def flaky(x: torch.Tensor) -> torch.Tensor:
        return softmax(x) + (next(calls) == 1)

    verdict = lean(make_task(SOFTMAX)).verify(flaky)

    assert verdict.is_nondeterministic
    assert not verdict.is_wrong


@pytest.mark.parametrize("run", range(RUN_COUNT))
def test_inputs_changed_by_any_run_are_found(lean: Make, run: int) -> None:
    runner = lean(make_task(SOFTMAX))
    calls = iter(range(100))

    def overwriting(x: torch.Tensor) -> torch.Tensor:
        result = softmax(x)
        if next(calls) == run:
            x[0, 0] += 1e-3
        return result

    verdict = runner.verify(overwriting)

    assert verdict.inputs_modified == ("x",)
    assert verdict.is_wrong


def test_precision_is_audited_on_rows_of_the_batch(lean: Make, judge: Judge) -> None:
    runner = lean(make_task(SOFTMAX))
    runner.verify(softmax)

    audited = judge.audit_precision(runner.handle)

    assert audited.audit is not None
    assert audited.audit.effective_bits > 20
    assert "33 of 33 rows" in audited.note


def test_precision_is_not_audited_where_rows_depend_on_each_other(
    lean: Make, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "_PICKED_ELEMENTS", {"cpu": 4 * 700, "cuda": 4 * 700})
    by_column = make_task("def forward(self, x):\n    return x / x.norm(dim=0)")
    dependent, independent = lean(by_column), lean(make_task(SOFTMAX))
    dependent.verify(lambda x: x / x.norm(dim=0))
    independent.verify(softmax)

    refused = judge.audit_precision(dependent.handle)
    audited = judge.audit_precision(independent.handle)

    assert refused.audit is None
    assert "no row is independent" in refused.note
    assert audited.audit is not None
    assert audited.audit.element_count == 700
    assert "10 of 33 rows" in audited.note


def test_kept_outputs_and_changed_inputs_are_judged(lean: Make, judge: Judge) -> None:
    runner = lean(make_task(SOFTMAX))
    runner.verify(softmax)
    kept = judge.verify_kept(runner.handle, (KeptOutput(seed=0, slot=0),)).verdict

    seeds = judge.change_inputs(runner.handle, with_parameters=True).seeds
    stale = softmax(judge._draws[runner.handle]._drawn(0).inputs[0])
    runner.side.run(softmax, "x")
    followed = judge.verify_changed(runner.handle, seeds)
    runner.side.run(lambda _: stale, "x")
    not_followed = judge.verify_changed(runner.handle, seeds)

    assert not kept.is_wrong
    assert seeds == (0,)
    assert [check.kind for check in followed.checks] == [CheckKind.DATA_FLOW]
    assert not followed.is_wrong
    assert not_followed.is_stale


def test_a_second_change_is_of_single_elements_alone(lean: Make, judge: Judge) -> None:
    runner = lean(make_task(SOFTMAX))
    runner.verify(softmax)
    draw = judge._draws[runner.handle]
    (slot,) = draw.source_slots
    before = draw._drawn(0).inputs[0].clone()
    changed = []

    for is_second in (False, True):
        seeds = judge.change_inputs(runner.handle, with_parameters=True, is_second=is_second).seeds
        changed.append(int((draw._view(0, slot) != before).sum()))
        runner.side.run(softmax, "x")
        verdict = judge.verify_changed(runner.handle, seeds)

        assert not verdict.is_wrong
        assert verdict.inputs_modified == ()

    # One in 64, then a few: what was changed first is as it was.
    assert changed[0] > 16
    assert 0 < changed[1] <= 16


def test_who_does_not_see_single_elements_is_caught_on_a_lean_draw(
    lean: Make, judge: Judge
) -> None:
    runner = lean(make_task(SOFTMAX))
    runner.verify(softmax)
    known: list[tuple[torch.Tensor, torch.Tensor]] = []

    def sampling(x: torch.Tensor) -> torch.Tensor:
        for before, result in known:
            if int((x != before).sum()) <= 16:  # hardly in what is looked at
                return result
        known.append((x.clone(), softmax(x)))
        return known[-1][1]

    runner.side.run(sampling, "x")
    verdicts = []
    for is_second in (False, True):
        seeds = judge.change_inputs(runner.handle, with_parameters=True, is_second=is_second).seeds
        runner.side.run(sampling, "x")
        verdicts.append(judge.verify_changed(runner.handle, seeds))

    assert [verdict.is_wrong for verdict in verdicts] == [False, True]


def test_what_no_seed_decides_is_drawn_with_copies(judge: Judge) -> None:
    clock = "__import__('time').time_ns()"
    inputs = f"[torch.randn(rows, cols, generator=torch.Generator().manual_seed({clock}))]"
    task = make_task(SOFTMAX, inputs=inputs)

    draw, _ = judge.draw(task, task.workloads[0].name, TOLERANCE, SEEDS, is_lean=True)

    assert not draw.is_lean
    assert draw.seed_count == len(SEEDS)
    with pytest.raises(InvalidArgumentError, match="cannot load seed 1"):
        judge.load_seed(draw.draw, 1)
    judge.release(draw.draw)


def test_digests_tell_contents_apart(judge: Judge) -> None:
    device = judge._memory.torch_device
    digester = Digester(device, most_bytes=100_003)
    data = torch.randint(0, 256, (100_003,), dtype=torch.uint8, device=device)

    whole = digester.digest(data)
    assert digester.digest(data.clone()) == whole
    for place in (0, 50_001, 100_000, 100_002):
        other = data.clone()
        other[place] ^= 0x80
        assert digester.digest(other) != whole
    assert digester.digest(data[:-1]) != whole
    swapped = torch.cat([data[4:8], data[:4], data[8:]])
    assert digester.digest(swapped) != whole or torch.equal(swapped, data)


def test_no_run_counts_twice_for_want_of_memory_in_the_tasks_check(
    lean: Callable[[Task], LeanRunner],
) -> None:
    task = make_task(SOFTMAX)
    text = (
        f"{task.reference}\n\ndef looked_at(inputs, expected, actual):\n"
        "    looked_at.calls = getattr(looked_at, 'calls', 0) + 1\n"
        "    if looked_at.calls == 1:\n"
        "        raise torch.OutOfMemoryError\n"
    )
    verdict = lean(replace(task, reference=text, check="looked_at")).verify(softmax)
    assert not verdict.is_wrong
    assert verdict.correctness.run_count == RUN_COUNT
