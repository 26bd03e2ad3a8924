"""The recorder of landscapes, on an evaluator without devices."""

import gzip
import json
import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from generator_svc.recipes.genome import plain
from generator_svc.recipes.graph_reader import read_graph
from generator_svc.recipes.recipe import Recipe
from generator_svc.recipes.recipes import choose_recipe
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import ProcessLostError
from kernel_foundry.testing.evaluator import FakeEvaluator
from landscapes.record import FASTEST_SHARE, MEASUREMENTS, RecordingSettings, record, variants
from tests.recipes.reference_graph import admission_of

TASK = Task(name="softmax", reference="class Model: ...", workloads=(Workload(name="default"),))
SETTINGS = RecordingSettings(
    task=TASK,
    language=Language.SYCL,
    device="",
    most=6,
    seed=0,
    in_flight=2,
    minutes=1.0,
)


class _Evaluator(FakeEvaluator):
    """Knows the graph of a softmax; fails to compile what keeps nothing; can lose processes."""

    def __init__(self, *, lost_after: int | None = None) -> None:
        super().__init__()
        self.requests: list[EvaluationRequest] = []
        self._lost_after = lost_after

    async def admit(self, task: Task, device: str = "") -> Admission:
        faked = await super().admit(task, device)
        real = admission_of(nn.Softmax(dim=-1), [torch.randn(8, 64)])
        workloads = (replace(faked.workloads[0], graph=real.workloads[0].graph),)
        workloads = (replace(workloads[0], tensors=real.workloads[0].tensors),)
        return replace(faked, workloads=workloads)

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        if self._lost_after is not None and len(self.requests) >= self._lost_after:
            raise ProcessLostError("the judge died", cause="test")
        self.requests.append(request)
        evaluation = await super().evaluate(request)
        if "keep=nothing" not in request.source.plan:
            return evaluation
        outcome = EvaluationOutcome.COMPILE_ERROR
        return replace(evaluation, outcome=outcome, workloads=(), measures=None)


def _wanted(most: int) -> int:
    """Return how many variants are recorded where at most `most` are asked for."""
    return len(variants(_recipe(), seed=0, most=most)[0])


def _recipe() -> Recipe:
    admission = admission_of(nn.Softmax(dim=-1), [torch.randn(8, 64)])
    return choose_recipe(read_graph(admission), language=Language.SYCL, device=admission.device)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


async def test_a_landscape_has_a_header_and_a_row_for_each_variant(tmp_path: Path) -> None:
    out = tmp_path / "softmax.jsonl.gz"
    evaluator = _Evaluator()
    assert await record(evaluator, replace(SETTINGS, most=40), out) == 0
    header, *rows = _lines(out)
    assert header["landscape"] == 1
    assert header["name"] == "softmax-sycl"
    assert header["baseline_ns"] == pytest.approx(1e6)
    values = {p["name"]: p["values"] for p in header["parameters"]}
    assert len(rows) == _wanted(40)
    assert len({json.dumps(row["parameters"]) for row in rows}) == len(rows)
    for row in rows:
        assert row["parameters"].keys() == values.keys()
        assert all(value in values[name] for name, value in row["parameters"].items())
        passed = row["outcome"] == "PASSED"
        assert row["launches"] is None  # this evaluator binds nothing
        assert bool(row["times_ns"]) == passed == (row["measures"] is not None)
    assert {row["outcome"] for row in rows} == {"PASSED", "COMPILE_ERROR"}


async def test_candidates_are_raced_against_nothing(tmp_path: Path) -> None:
    evaluator = _Evaluator()
    await record(evaluator, SETTINGS, tmp_path / "softmax.jsonl.gz")
    assert len(evaluator.requests) == _wanted(SETTINGS.most)
    for request in evaluator.requests:
        assert request.stop_above_ns == ()
        assert not request.use_tools
        assert request.limits.timing_seconds <= 0.3


async def test_a_recording_that_broke_off_is_gone_on_with(tmp_path: Path) -> None:
    out = tmp_path / "softmax.jsonl.gz"
    assert await record(_Evaluator(lost_after=3), SETTINGS, out) == _wanted(SETTINGS.most) - 3
    first = _lines(out)[1:]
    assert len(first) == 3
    second = _Evaluator()
    assert await record(second, SETTINGS, out) == 0
    assert len(second.requests) == _wanted(SETTINGS.most) - 3
    assert _lines(out)[1:4] == first


async def test_rows_of_a_killed_recording_are_kept(tmp_path: Path) -> None:
    """A kill leaves the rows beside the landscape, the last one perhaps cut off."""
    out = tmp_path / "softmax.jsonl.gz"
    await record(_Evaluator(), SETTINGS, out)
    text = gzip.decompress(out.read_bytes()).decode()
    out.unlink()
    rows = out.with_name(out.name + ".rows")
    rows.write_text(text[:-20])
    evaluator = _Evaluator()
    assert await record(evaluator, SETTINGS, out) == 0
    assert len(evaluator.requests) == 1
    assert not rows.exists()
    assert len(_lines(out)) == 1 + _wanted(SETTINGS.most)


async def test_rows_of_another_task_are_not_gone_on_with(tmp_path: Path) -> None:
    out = tmp_path / "softmax.jsonl.gz"
    await record(_Evaluator(), SETTINGS, out)
    before = out.read_bytes()
    other = replace(SETTINGS, task=replace(TASK, name="other"))
    with pytest.raises(SystemExit, match="recorded with another task"):
        await record(_Evaluator(), other, out)
    assert out.read_bytes() == before


async def test_it_ends_in_time(tmp_path: Path) -> None:
    evaluator = _Evaluator()
    missing = await record(evaluator, replace(SETTINGS, minutes=0.0), tmp_path / "softmax.jsonl")
    assert (missing, evaluator.requests) == (_wanted(SETTINGS.most), [])


def test_the_plainest_comes_first_and_the_rest_by_the_seed() -> None:
    recipe = _recipe()
    every, count = variants(recipe, seed=0, most=10_000)
    assert len(set(every)) == len(every) == count
    assert every[0] == recipe.normalised(plain(recipe.family, recipe.genes))
    assert all(recipe.normalised(genome) == genome for genome in every)
    other, _ = variants(recipe, seed=1, most=10_000)
    assert other[0] == every[0]
    assert other != every
    assert set(other) == set(every)


@pytest.mark.parametrize("most", [5, 50, 200, 600])
def test_fewer_variants_are_a_whole_grid(most: int) -> None:
    """What a step leads to within the values that are there has been recorded, too."""
    recipe = _recipe()
    found, count = variants(recipe, seed=0, most=most)
    assert most / 4 < len(found) <= most < count
    values = {gene.name: {genome[gene.name] for genome in found} for gene in recipe.genes}
    for genome in found:
        for name, others in values.items():
            assert all(recipe.normalised(genome.replaced(name, v)) in found for v in others)


class _Lucky(_Evaluator):
    """Says at first that everything is fast, in turn; measured again, what it really takes."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        evaluation = await FakeEvaluator.evaluate(self, request)
        is_first = all(r.source != request.source for r in self.requests)
        number = len({r.source.digest for r in self.requests})
        self.requests.append(request)
        (workload,) = (w for w in evaluation.workloads if w.timing is not None)
        assert workload.timing is not None
        time_ns = 1e3 + number if is_first else 9e3
        timing = replace(workload.timing, samples_ns=(time_ns,) * 5)
        return replace(evaluation, workloads=(replace(workload, timing=timing),))


async def test_the_fastest_are_measured_again_until_they_are_no_lucky_ones(tmp_path: Path) -> None:
    out = tmp_path / "softmax.jsonl.gz"
    await record(_Lucky(), replace(SETTINGS, most=40, in_flight=1), out)
    rows = _lines(out)[1:]
    by_time = sorted(rows, key=lambda row: statistics.median(row["times_ns"]))
    # All but the few that were left when nothing was faster turned out to be slow.
    fastest = by_time[: math.ceil(FASTEST_SHARE * len(rows))]
    assert all(len(row["times_ns"]) == 5 * MEASUREMENTS for row in fastest)
    assert statistics.median(by_time[-1]["times_ns"]) == 9e3
