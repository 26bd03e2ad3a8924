"""Parameters keep no zeros, signs and sizes that they start with, but for what the task means."""

from dataclasses import replace

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.comparison.ranges import verify_ranges
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import TOLERANCE, RunnerSide, make_task, prepare

WEIGHTS, USUAL, OUTLIERS = (
    Distribution.WEIGHTS,
    Distribution.USUAL_WEIGHTS,
    Distribution.WEIGHT_OUTLIERS,
)


def _task(weight: str, result: str, *, cols: int = 32) -> Task:
    text = f"""
def __init__(self):
    super().__init__()
    {weight}

def forward(self, x):
    return {result}
"""
    return make_task(text, rows=40, cols=cols)


IDENTITY = _task("self.mix = nn.Parameter(torch.eye(cols))", "x @ self.mix")
TRIANGLE = "self.mix = nn.Parameter(torch.tril(torch.ones(cols, cols)){0})"


def _found(prepared: PreparedWorkload) -> set[Distribution]:
    ranges = next(iter(find_value_ranges([prepared], TOLERANCE, 101).values()), ())
    found = {r.distribution for r in ranges if r.is_binding}
    return found & {WEIGHTS, USUAL, OUTLIERS}


def _of(prepared: PreparedWorkload, distribution: Distribution) -> torch.Tensor:
    (weight,) = with_distribution(prepared, prepared.input_set(5), distribution).state.values()
    return weight


def test_what_starts_as_the_identity_is_dense_in_every_draw() -> None:
    """So is what is timed, where a kernel could look at a few places."""
    (weight,) = prepare(IDENTITY).input_set(5).state.values()
    assert bool(weight.all())
    assert float(weight.diagonal().min()) >= 0.5
    beside = weight[~torch.eye(32, dtype=torch.bool)]
    assert 0.1 < float(beside.std()) < 0.3


@pytest.mark.parametrize(
    ("task", "kept"),
    [
        (_task(TRIANGLE.format(", requires_grad=False"), "x @ self.mix"), ("mix",)),
        (replace(_task(TRIANGLE.format(""), "x @ self.mix"), constants=("mix",)), ()),
        (_task('self.register_buffer("mix", torch.eye(cols))', "x @ self.mix"), ("mix",)),
    ],
    ids=["frozen", "constant", "buffer"],
)
def test_what_is_meant_keeps_its_zeros(task: Task, kept: tuple[str, ...]) -> None:
    """And is named in verdicts, unless the task does so."""
    prepared = prepare(task)
    (base,) = (rule.base for rule in prepared.rules)
    for distribution in (WEIGHTS, USUAL, OUTLIERS):
        assert torch.equal(_of(prepared, distribution) == 0, base == 0)
    assert _found(prepared) == set()
    assert prepared.kept_weights == kept


def test_constants_of_the_task_may_be_parameters() -> None:
    prepared = prepare(replace(IDENTITY, constants=("mix",)))
    assert torch.equal(*(_prepared.state["mix"] for _prepared in map(prepared.input_set, (5, 6))))
    assert torch.equal(prepared.input_set(5).state["mix"], torch.eye(32))


def test_zeros_stay_where_the_reference_needs_them() -> None:
    forward = "x * torch.sqrt(1 - self.mix.abs().sum(-1))"
    prepared = prepare(_task("self.mix = nn.Parameter(0.5 * torch.eye(cols))", forward))
    assert int((prepared.input_set(5).state["mix"] != 0).sum()) == 32


def test_unusual_parameters_are_dense_of_both_signs_and_of_mixed_sizes() -> None:
    prepared = prepare(
        _task(
            "self.gate = nn.Parameter(torch.zeros(rows, cols))",
            "x * torch.tanh(self.gate)",
            cols=512,
        )
    )
    assert _found(prepared) == {WEIGHTS, OUTLIERS}
    ordinary, large = prepared.input_set(5).state["gate"], _of(prepared, WEIGHTS)
    sizes = large.abs() / ordinary.square().mean().sqrt()
    assert 0.4 < float((large > 0).float().mean()) < 0.6
    assert 0.1 < float((sizes < 1).float().mean()) < 0.3
    assert 0.1 < float((sizes > 16).float().mean()) < 0.4
    differs = _of(prepared, OUTLIERS) != ordinary
    assert differs.sum(-1).tolist() == [1] * 40


def test_signs_stay_where_the_reference_is_defined_on_them_alone() -> None:
    weight = "self.rate = nn.Parameter(torch.rand(cols) + 0.1)"
    prepared = prepare(_task(weight, "x * self.rate.log()"))
    assert _found(prepared) == {WEIGHTS, OUTLIERS}
    assert all(float(_of(prepared, d).min()) > 0 for d in (WEIGHTS, OUTLIERS))


def test_an_eighth_of_the_elements_is_zero_where_nothing_is_divided_by_them() -> None:
    weight = "self.gain = nn.Parameter(torch.randn(rows, cols))"
    product, quotient = (
        _of(prepare(_task(weight, result, cols=512)), WEIGHTS)
        for result in ("x * self.gain", "x / self.gain")
    )
    assert 0.1 < float((product == 0).float().mean()) < 0.15
    assert bool(quotient.all())


def test_running_variances_stay_positive() -> None:
    task = _task("self.norm = nn.BatchNorm1d(cols)", "self.norm(x)")
    prepared = prepare(replace(task, training=False))
    assert _found(prepared) == {WEIGHTS, OUTLIERS}
    for distribution in (WEIGHTS, OUTLIERS):
        state = with_distribution(prepared, prepared.input_set(5), distribution).state
        assert float(state["norm.running_var"].min()) > 0.4
        assert float(state["norm.weight"].min()) < 0 < float(state["norm.weight"].max())


def test_parameters_are_of_usual_size_where_larger_ones_overflow() -> None:
    forward = "torch.exp(30 * (x @ self.mix).tanh() + (self.mix.square().sum()))"
    prepared = prepare(_task("self.mix = nn.Parameter(torch.randn(cols, cols) / cols)", forward))
    assert WEIGHTS not in _found(prepared)
    assert USUAL in _found(prepared)


def test_who_relies_on_small_parameters_is_wrong_and_buffers_are_named(judge: Judge) -> None:
    task = _task(
        "self.gate = nn.Parameter(torch.zeros(cols)); self.table = torch.ones(cols) / 2",
        "x * torch.tanh(self.gate) * self.table",
    )
    ranges = (ValueRange(distribution=WEIGHTS, factor=4.0, is_binding=True),)
    draw, descriptors = judge.draw(
        task, task.workloads[0].name, TOLERANCE, (7,), tuple(r.distribution for r in ranges)
    )
    runner = RunnerSide(judge, draw, descriptors)
    verdicts = {}
    for name, tangent in (("honest", torch.tanh), ("series", lambda a: a - a**3 / 3)):
        runner.run(lambda x, gate, t=tangent: x * t(gate) * 0.5, "x", "gate")
        (verdicts[name],) = verify_ranges(judge._draws[draw.draw], ranges)
    assert not verdicts["honest"].is_wrong
    assert verdicts["honest"].check.note == "weights: but for table, which keeps its structure"
    assert verdicts["series"].is_wrong
    assert verdicts["series"].check.result is CheckResult.FAILED
    assert "parameters" in verdicts["series"].findings[0].message


def test_a_column_of_weights_leaves_nothing_of_a_row_above_zero() -> None:
    prepared = prepare(_task("self.layer = nn.Linear(cols, 96)", "self.layer(x).amax(-1)"))
    above, below = (
        with_distribution(prepared, prepared.input_set(seed), OUTLIERS).expected()[0]
        for seed in (5, 4)
    )
    assert bool((above > 0).all())
    assert 0.2 < float((below < 0).double().mean()) < 0.8


def test_a_reference_that_has_no_numbers_then_keeps_its_columns() -> None:
    prepared = prepare(
        _task("self.layer = nn.Linear(cols, 96)", "(9 * self.layer(x)).exp().amax(-1)")
    )
    ordinary = prepared.input_set(4)
    weight = with_distribution(prepared, ordinary, OUTLIERS).state["layer.weight"]
    assert int((weight == ordinary.state["layer.weight"]).count_nonzero()) == 96 * 31
    assert int((weight.abs().argmax(-1) == weight.abs().argmax(-1)[0]).count_nonzero()) < 96
