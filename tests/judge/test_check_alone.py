"""A task's check in place of the comparison: many answers are right, and all else is held to."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator_svc.judge import Judge
from evaluator_svc.judge.admission.answer_check import ADMISSION_SEEDS
from evaluator_svc.judge.admission.check_trial import try_check
from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.comparison.unwritten import _unwritten
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference import task_module
from evaluator_svc.judge.reference.check_call import shown_values
from evaluator_svc.messages.draw import POISON_BYTES
from evaluator_svc.messages.judge import KeptVerdict
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.task import Task, Tolerance
from kernel_foundry.errors import TaskInvalidError
from tests.judge.judge_tasks import (
    EACH_MEMORY_AND_SIZE,
    PEAKS,
    TOLERANCE,
    RunnerSide,
    make_task,
    prepare,
)
from tests.judge.test_kept_calls import Timed

Drawn = Callable[..., RunnerSide]

SIGN_FREE = "return bool(torch.isclose(actual[0].abs(), expected[0].abs()).all()) or 'another size'"
"""As eigenvectors are: the sign is anybody's choice."""


def task_with(check: str, body: str = "def forward(self, x):\n    return 3 * x\n") -> Task:
    made = make_task(body)
    text = f"{made.reference}\n\ndef looked_at(inputs, expected, actual):\n    {check}\n"
    return replace(made, reference=text, check="looked_at", compare=False)


def checks_of(verdict: Any) -> dict[CheckKind, CheckResult]:
    return {check.kind: check.result for check in verdict.checks}


@pytest.mark.parametrize("judge", ["host", "host large"], indirect=True)
def test_an_answer_that_the_check_accepts_is_right_and_no_other(judge: Judge, drawn: Drawn) -> None:
    for factor, is_right in ((-3.0, True), (-3.1, False)):
        runner = drawn(task_with(SIGN_FREE))
        runner.run(lambda x, factor=factor: factor * x, "x")
        verdict = judge.verify(runner.draw.draw)
        assert verdict.is_wrong is not is_right
        found = checks_of(verdict)
        assert found[CheckKind.COMPARISON] is CheckResult.SKIPPED
        assert found[CheckKind.TASK_CHECK] is (
            CheckResult.PASSED if is_right else CheckResult.FAILED
        )
        assert verdict.correctness.mismatch_count == 0
        messages = [f.message for f in verdict.findings if f.kind is FindingKind.MISMATCH]
        assert ["another size" in text for text in messages] == [True] * (not is_right)


FAR = "error = (actual[0] - expected[0]).abs().max()\n    return 'far' if error > 1e-3 else None"
"""As one writes it, and NaN passes."""


@pytest.mark.parametrize("judge", ["host", "host large"], indirect=True)
def test_no_number_is_wrong_whatever_the_check_accepts(judge: Judge, drawn: Drawn) -> None:
    runner = drawn(task_with(FAR))
    runner.run(lambda x: torch.full_like(x, torch.nan), "x")
    assert judge.verify_decoy(runner.draw.draw) == ()
    verdict = judge.verify(runner.draw.draw)
    assert verdict.is_wrong
    assert checks_of(verdict)[CheckKind.TASK_CHECK] is CheckResult.FAILED
    (finding,) = [f for f in verdict.findings if f.kind is FindingKind.NOT_A_NUMBER]
    assert "output 0 holds NaN or infinity" in finding.message


def test_infinity_is_right_where_the_reference_has_it(judge: Judge, drawn: Drawn) -> None:
    body = "def forward(self, x):\n    return x.relu().log()\n"
    runner = drawn(task_with("return bool(actual[0].equal(expected[0]))", body))
    runner.run(lambda x: x.relu().log(), "x")
    assert not judge.verify(runner.draw.draw).is_wrong


LARGEST = "def forward(self, x):\n    return x.argmax(-1)\n"


@pytest.mark.parametrize("judge", EACH_MEMORY_AND_SIZE, indirect=True)
@pytest.mark.parametrize("place", [70, -(2**62), 2**62])
def test_a_place_out_of_range_is_an_error_of_the_checks(
    judge: Judge, drawn: Drawn, place: int
) -> None:
    """And neither the end of a judge on a GPU, nor all of its memory."""
    check = (
        "torch.bincount(actual[0].clamp(min=0))\n"
        "    found = inputs[0].gather(-1, actual[0][:, None])[:, 0]\n"
        "    return bool(found.equal(inputs[0].amax(-1)))"
    )
    runner = drawn(task_with(check, LARGEST))
    runner.run(lambda x: torch.full((33,), place, device=x.device), "x")
    assert judge.verify(runner.draw.draw).is_wrong
    assert judge.is_sound()


def test_a_check_looks_at_whole_numbers_in_host_memory() -> None:
    """Nothing can be copied from the meta device, so to try it is an error."""
    x, places = torch.empty(4, 3, device="meta"), torch.empty(4, dtype=torch.int64, device="meta")
    inputs, _, _ = shown_values([x, [x]], [x], [x])
    assert inputs[0].is_meta
    with pytest.raises(NotImplementedError, match="meta tensor"):
        shown_values([1.0], [places], [])


def test_what_was_not_written_is_wrong_whatever_the_check_accepts(
    judge: Judge, drawn: Drawn
) -> None:
    runner = drawn(task_with("return True"))
    runner.run(lambda x: -x, "x")
    for seed in range(3):
        for slot, byte in enumerate(POISON_BYTES):
            runner.tensor("out", seed=seed, slot=slot)[-1].view(torch.uint8).fill_(byte)
    verdict = judge.verify(runner.draw.draw)
    assert verdict.is_wrong
    (finding,) = [f for f in verdict.findings if f.kind is FindingKind.OUTPUT_NOT_WRITTEN]
    assert "70 of 2310" in finding.message
    assert checks_of(verdict)[CheckKind.TASK_CHECK] is CheckResult.FAILED


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_unwritten_elements_are_those_of_poison_in_each_copy(data: st.DataObject) -> None:
    """Values that look like poison are none: a kernel writes them into every copy."""
    dtype = data.draw(st.sampled_from([torch.float32, torch.int64, torch.bfloat16, torch.uint8]))
    count = data.draw(st.integers(1, 40))
    size = torch.empty(0, dtype=dtype).element_size()
    written = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    byte = st.one_of(st.sampled_from(POISON_BYTES), st.integers(0, 255))
    values = [bytes([data.draw(byte)]) * size for _ in range(count)]
    copies = [
        torch.frombuffer(
            bytearray(
                b"".join(
                    v if w else bytes([p]) * size for v, w in zip(values, written, strict=True)
                )
            ),
            dtype=dtype,
        )
        for p in POISON_BYTES
    ]
    assert _unwritten(copies).tolist() == [not w for w in written]


def timed(judge: Judge, check: str, kernel: Callable[..., torch.Tensor]) -> KeptVerdict:
    """Return the verdict on timed calls of a candidate that was right before."""
    calls = Timed(judge, task_with(check), lambda x: -3 * x, is_lean=False)
    try:
        return calls.time(kernel)
    finally:
        judge.release(calls.handle)


def test_timed_calls_are_looked_at_too(judge: Judge) -> None:
    """On the inputs of the call: its outputs cannot be those of others."""
    kept = timed(judge, SIGN_FREE, lambda x: -3 * x)
    assert not kept.verdict.is_wrong
    assert kept.audited is None
    (check,) = kept.verdict.checks
    assert check.result is CheckResult.PASSED
    assert "3 of 3 calls" in check.note
    wrong = timed(judge, SIGN_FREE, lambda x: -3 * x.flip(0)).verdict
    assert wrong.is_wrong
    assert wrong.checks[0].result is CheckResult.FAILED


def test_timed_calls_of_which_the_check_tells_nothing_are_skipped(judge: Judge) -> None:
    """It refuses the reference's own outputs on what it was not called with before."""
    check = "looked_at.calls = getattr(looked_at, 'calls', 0) + 1\n    return looked_at.calls <= 3"
    kept = timed(judge, check, lambda x: -3 * x)
    assert not kept.verdict.is_wrong
    assert kept.verdict.checks[0].result is CheckResult.SKIPPED


def test_outputs_have_to_follow_changed_inputs(judge: Judge, drawn: Drawn) -> None:
    runner = drawn(task_with(SIGN_FREE))
    runner.run(lambda x: -3 * x, "x")
    before = [runner.tensor("out", seed=seed).clone() for seed in range(3)]
    seeds = judge.change_inputs(runner.draw.draw, with_parameters=True).seeds
    for seed in seeds:
        runner.tensor("out", seed=seed).copy_(before[seed])
    stale = judge.verify_changed(runner.draw.draw, seeds)
    for seed in seeds:
        runner.tensor("out", seed=seed).copy_(-3 * runner.tensor("x", seed=seed))
    followed = judge.verify_changed(runner.draw.draw, seeds)
    assert stale.is_wrong
    assert not followed.is_wrong
    assert checks_of(followed) == {CheckKind.DATA_FLOW: CheckResult.PASSED}


def test_a_decoy_is_right_where_the_check_says_so(judge: Judge, drawn: Drawn) -> None:
    runner = drawn(task_with(SIGN_FREE))
    assert judge.verify_decoy(runner.draw.draw) == ()
    runner.run(lambda x: -3 * x, "x")
    assert judge.verify_decoy(runner.draw.draw) == ("out",)


def test_precision_is_not_audited(judge: Judge, drawn: Drawn) -> None:
    runner = drawn(task_with(SIGN_FREE))
    runner.run(lambda x: -3 * x, "x")
    audited = judge.audit_precision(runner.draw.draw)
    assert audited.least_exact is None
    assert "looked_at() of the task alone" in audited.note


@pytest.mark.parametrize("check", ["return 'never right'", "return 1 / 0"])
def test_a_check_that_tells_nothing_is_the_tasks_failure(
    judge: Judge, drawn: Drawn, check: str
) -> None:
    runner = drawn(task_with(check))
    runner.run(lambda x: -3 * x, "x")
    with pytest.raises(TaskInvalidError, match=r"looked_at\(\) tells nothing"):
        judge.verify(runner.draw.draw)


LATE = "not done after"
OTHERS = "return actual[0].equal(expected[0]) or "


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("while actual[0].sum() != expected[0].sum():\n        pass", LATE),
        (OTHERS + "bytearray(1 << 40)", "MemoryError"),
        (OTHERS + "torch.empty(1 << 40).sum()", "RuntimeError"),
        (OTHERS + "'\\x1b[2J\\n\\u202eright'", r"\x1b[2J\n\u202eright"),
        (OTHERS + "'long ' * (1 << 20)", "long long"),
        (OTHERS + "''", "refuses the outputs: wrong"),
        (OTHERS + "object()", "gives a object"),
        (OTHERS + "exit('no')", "SystemExit"),
        ("assert actual[0].equal(expected[0]), '\\x07' * 10000", r"AssertionError: \x07"),
    ],
    ids=[
        "loops",
        "allocates",
        "of torch",
        "control",
        "long",
        "empty",
        "nonsense",
        "exits",
        "raises",
    ],
)
def test_what_a_hostile_check_does_is_bounded(
    judge: Judge, drawn: Drawn, monkeypatch: pytest.MonkeyPatch, check: str, said: str
) -> None:
    """It accepts the reference's outputs, so it is the candidate's that it refuses."""
    if said == LATE:
        monkeypatch.setattr(task_module, "_CHECK_SECONDS", 0.5)
    runner = drawn(task_with(check))
    runner.run(lambda x: -3 * x, "x")
    verdict = judge.verify(runner.draw.draw)
    assert verdict.is_wrong
    (message,) = [f.message for f in verdict.findings if f.kind is FindingKind.MISMATCH]
    assert said in message
    assert len(message) < 1200
    assert message.isprintable()


def test_what_a_check_writes_to_is_its_own(judge: Judge, drawn: Drawn) -> None:
    task = task_with(
        "assert inputs[1] == [1, 2]\n    inputs[1].clear()\n"
        "    return all(t.zero_() is t for t in (inputs[0], expected[0], actual[0]))",
        "def forward(self, x, places):\n    return 3 * x\n",
    )
    text = task.reference.replace("[torch.randn(rows, cols)]", "[torch.randn(rows, cols), [1, 2]]")
    runner = drawn(replace(task, reference=text))
    runner.run(lambda x: -3 * x, "x")
    verdict = judge.verify(runner.draw.draw)
    assert not verdict.is_wrong
    assert checks_of(verdict)[CheckKind.INPUTS_INTACT] is CheckResult.PASSED
    assert not judge.verify(runner.draw.draw).is_wrong


def trial(task: Task) -> tuple[list[str], list[str], list[str]]:
    found = try_check(task, [prepare(task)], ADMISSION_SEEDS)
    return found.refusals, found.degeneracies, found.warnings


def test_a_check_alone_that_accepts_other_answers_is_degenerate() -> None:
    refusals, degeneracies, _ = trial(task_with("return True"))
    assert refusals == degeneracies
    for name in ("zeros", "ones", "reverse order", "for other inputs"):
        assert name in refusals[0]
    refusals, _, warnings = trial(task_with(SIGN_FREE))
    assert refusals == []
    assert len(warnings) == 1  # what is left out without a comparison


def test_a_check_that_barely_keeps_to_its_time_is_not_admitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine it would be too slow for a candidate."""
    monkeypatch.setattr(task_module, "_CHECK_SECONDS", 1.0)
    refusals, degeneracies, _ = trial(task_with("import time\n    return time.sleep(0.4)"))
    assert degeneracies == []
    assert "looked_at() is not done after 0.2 s" in refusals[0]


def test_a_workload_without_room_to_try_other_answers_is_named() -> None:
    task = task_with("return True")
    large = PreparedWorkload(task, task.workloads[0], device=torch.device("cpu"), memory_bytes=1)
    found = try_check(task, [large], ADMISSION_SEEDS)
    assert "too large to try looked_at()" in found.warnings[-1]


def test_other_answers_of_eight_bits_are_tried_too() -> None:
    body = "def forward(self, x):\n    return x.to(torch.float8_e4m3fn)\n"
    refusals, _, _ = trial(task_with("return True", body))
    assert "each output in reverse order" in refusals[0]


def test_sizes_at_which_the_check_refuses_the_reference_are_left_out(judge: Judge) -> None:
    task = task_with("if len(actual[0]) != 33:\n        return 'rows'\n    " + SIGN_FREE)
    admission = judge.admit(task, PEAKS)
    assert admission.refusals == ()
    generated = [workload for workload in admission.workloads if workload.is_generated]
    assert generated
    assert {workload.tensors[0].shape[0] for workload in generated} == {33}
    (stuck,) = [note for note in admission.untried if "no other size" in note]
    assert stuck.startswith("rows: ")
    assert "looked_at() refuses its outputs there" in stuck


def test_beside_a_comparison_it_is_a_warning() -> None:
    task = replace(task_with("return True"), compare=True)
    refusals, _, warnings = trial(task)
    assert refusals == []
    assert "accepts anything, such as zeros" in warnings[0]
    assert trial(replace(task_with(SIGN_FREE), compare=True)) == ([], [], [])


def test_an_output_that_the_check_does_not_look_at_is_named() -> None:
    body = "def forward(self, x):\n    return 3 * x, x + 1\n"
    _, _, warnings = trial(task_with(SIGN_FREE, body))
    assert "accepts zeros for output 1" in warnings[-1]


def test_a_random_reference_is_admitted(judge: Judge) -> None:
    """As a sample is: its check looks at what any sample has to be."""
    body = "def forward(self, x):\n    return torch.rand_like(x).add_(10 * x.round())\n"
    check = "return bool(actual[0].sub(10 * inputs[0].round()).sub(0.5).abs().le(0.5).all())"
    task = task_with(check, body)
    admission = judge.admit(task, PEAKS)
    assert admission.refusals == ()
    assert any("looked_at() alone" in warning for warning in admission.warnings)
    assert any(workload.value_ranges for workload in admission.workloads)
    generated = [workload for workload in admission.workloads if workload.is_generated]
    assert generated
    for workload in generated:
        sizes = [4 * math.prod(tensor.shape) for tensor in workload.tensors]
        assert workload.minimal_bytes == sum(sizes)  # its own, not those of the task's sizes
    compared = judge.admit(replace(task, compare=True), PEAKS)
    assert any("the reference is random" in refusal for refusal in compared.refusals)


def test_there_is_nothing_to_hold_outputs_to() -> None:
    task = task_with(SIGN_FREE)
    assert task.digest != replace(task, compare=True).digest
    for change in (
        {"check": ""},
        {"tolerance": Tolerance(rtol=1e-3, atol=1e-3)},
        {"least_bits": 12.0},
    ):
        with pytest.raises(ValueError, match="without a comparison"):
            replace(task, **change)


IS_LARGEST = (
    "found = inputs[0].gather(-1, actual[0][:, None])[:, 0]\n"
    "    return bool(found.equal(inputs[0].amax(-1)))"
)
NEGATIVE = ValueRange(distribution=Distribution.NEGATIVE, factor=1.0, is_binding=True)


def test_unusual_values_are_tried_where_the_check_accepts_the_reference() -> None:
    def found(task: Task) -> set[Distribution]:
        ranges = find_value_ranges([prepare(task)], TOLERANCE, ADMISSION_SEEDS[0])
        assert all(r.is_binding for rs in ranges.values() for r in rs)
        return {r.distribution for rs in ranges.values() for r in rs}

    assert {Distribution.NEGATIVE, Distribution.ZEROS, Distribution.FAR} <= found(
        task_with(IS_LARGEST, LARGEST)
    )
    equal = "return bool(actual[0].sort().values.equal(expected[0].sort().values))"
    moved = "def forward(self, x):\n    return x.topk(4, -1).values\n"
    assert {Distribution.MAGNITUDES, Distribution.COLUMNS} <= found(task_with(equal, moved))
    # Of equal values anybody may be named, and this check is for one answer.
    tried = found(task_with(equal, moved.replace("values", "indices")))
    assert Distribution.MAGNITUDES in tried
    assert Distribution.ZEROS not in tried
    small = found(task_with("return bool(expected[0].abs().max() < 20)"))
    assert Distribution.SPARSE in small
    assert Distribution.LARGE not in small
    rounded = "return bool(actual[0].equal(inputs[0].softmax(-1)))"
    softmax = "def forward(self, x):\n    return x.softmax(-1)\n"
    assert not found(task_with(rounded, softmax)) - {Distribution.NEGATIVE, Distribution.FAR}


@pytest.mark.parametrize("begins_at", [0.0, -math.inf])
def test_the_check_tells_what_is_wrong_on_unusual_values(judge: Judge, begins_at: float) -> None:
    task = task_with(IS_LARGEST, LARGEST)
    name = task.workloads[0].name
    drawn, descriptors = judge.draw(task, name, TOLERANCE, (11,), (NEGATIVE.distribution,))
    try:
        side = RunnerSide(judge, drawn, descriptors)
        side.run(lambda x: torch.where(x > begins_at, x, -torch.inf).argmax(-1), "x")
        (verdict,) = judge.verify_ranges(drawn.draw, (NEGATIVE,)).verdicts
    finally:
        judge.release(drawn.draw)
    assert verdict.is_wrong is (begins_at == 0.0)
    messages = [finding.message for finding in verdict.findings]
    assert ["none is above zero" in text for text in messages] == [True] * verdict.is_wrong
