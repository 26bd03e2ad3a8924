"""Sweeps on the CPU device: what becomes of each sort of configuration."""

import asyncio

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import ConfigurationResult, SweepRequest, Validity, best_of
from kernel_foundry.plan.candidate_text import split
from tests.quick_settings import quick_settings
from tests.sweep.conftest import (
    HOSTILE_BODY,
    LIMITS,
    MODES,
    TASK,
    Swept,
    candidate,
    configuration,
    settings,
)

pytestmark = pytest.mark.sycl

_PLAIN = candidate('TUNE = {"WG": [64, 16, 128]}\nWHERE = ["WG != 16"]')


@pytest.fixture(scope="module")
def hostile(sweep: Swept) -> dict[str, ConfigurationResult]:
    """The results of a sweep in which almost everybody misbehaves, by name of the mode."""
    text = candidate(f'TUNE = {{"WG": [64], "MODE": {list(range(len(MODES)))}}}', body=HOSTILE_BODY)
    results = sweep(text)
    assert all(r.total == len(MODES) for r in results)
    return {MODES[int(settings(r)["MODE"])]: r for r in results}


def test_every_configuration_has_one_result(hostile: dict[str, ConfigurationResult]) -> None:
    assert set(hostile) == set(MODES)


@pytest.mark.parametrize(
    ("mode", "validity", "outcome"),
    [
        ("right", Validity.CORRECT, EvaluationOutcome.PASSED),
        ("slow", Validity.CORRECT, EvaluationOutcome.PASSED),
        ("wrong", Validity.CORRECTNESS, EvaluationOutcome.WRONG_RESULT),
        ("held_out", Validity.CORRECTNESS, EvaluationOutcome.WRONG_RESULT),
        ("asserts", Validity.CONSTRAINTS, EvaluationOutcome.COMPILE_ERROR),
        ("broken", Validity.COMPILE, EvaluationOutcome.COMPILE_ERROR),
        ("crashes", Validity.RUNTIME, EvaluationOutcome.CRASHED),
        ("hangs", Validity.TIMEOUT, EvaluationOutcome.TIMEOUT),
    ],
)
def test_each_misdeed_has_its_validity(
    hostile: dict[str, ConfigurationResult],
    mode: str,
    validity: Validity,
    outcome: EvaluationOutcome,
) -> None:
    result = hostile[mode]
    assert (result.validity, result.outcome) == (validity, outcome), result.findings
    assert bool(result.findings) == (validity is not Validity.CORRECT)
    assert bool(result.timings) == (validity is Validity.CORRECT)


def test_slow_configuration_is_raced_out_after_few_samples(
    hostile: dict[str, ConfigurationResult],
) -> None:
    slow, right = hostile["slow"], hostile["right"]
    assert slow.raced_out
    assert not right.raced_out
    assert len(slow.timings[0].timing.samples_ns) < 10
    assert best_of(tuple(hostile.values())) == right
    assert slow.speedup is not None
    assert right.speedup is not None
    assert slow.speedup < right.speedup


def test_only_timed_workloads_have_times(hostile: dict[str, ConfigurationResult]) -> None:
    assert [t.workload for t in hostile["right"].timings] == ["default"]


def test_where_leaves_configurations_out_and_the_cache_keeps_what_was_built(sweep: Swept) -> None:
    first = sweep(_PLAIN)
    assert sorted(settings(r)["WG"] for r in first) == ["128", "64"]
    assert all(r.is_correct for r in first), first
    again = sweep(_PLAIN)
    assert all(r.cached for r in again)
    assert all(r.times.compile_ms == 0 for r in again)


def test_the_best_configuration_passes_a_whole_evaluation(sweep: Swept) -> None:
    best = best_of(tuple(sweep(_PLAIN)))
    assert best is not None
    request = EvaluationRequest(
        task=TASK,
        device="sycl:0",
        source=split(_PLAIN),
        configuration=best.configuration,
        limits=LIMITS,
    )
    evaluation = sweep._runner.run(sweep.evaluator.evaluate(request))
    assert evaluation.passed, evaluation.findings
    assert evaluation.configuration == best.configuration


def test_require_means_not_meant(sweep: Swept) -> None:
    text = candidate('TUNE = {"WG": [64, 128]}', require="require(WG < 100)")
    validity = {settings(r)["WG"]: r.validity for r in sweep(text)}
    assert validity == {"64": Validity.CORRECT, "128": Validity.CONSTRAINTS}


def test_order_and_limit_decide_what_is_tried(sweep: Swept) -> None:
    text = candidate('TUNE = {"WG": [64, 16, 32, 128]}')
    wanted = (configuration(WG=999), configuration(WG=128))
    results = sweep(text, order=wanted, max_configurations=2)
    assert {settings(r)["WG"] for r in results} == {"64", "128"}


def test_candidate_without_tune_is_one_configuration(sweep: Swept) -> None:
    (result,) = sweep(candidate("WG = 64"))
    assert result.is_correct
    assert result.configuration == ()


def test_a_plan_that_is_none_is_one_result(sweep: Swept) -> None:
    (result,) = sweep(candidate('TUNE = {"WG": [64]}\nimport os'))
    assert (result.outcome, result.configuration) == (EvaluationOutcome.PLAN_ERROR, ())
    assert result.findings


def test_same_request_id_gives_the_same_results(sweep: Swept) -> None:
    first = sweep(_PLAIN, request_id="once")
    assert sweep(_PLAIN, request_id="once") == first


def test_a_request_id_is_of_one_sweep(sweep: Swept) -> None:
    """Two clients may choose the same: each gets the results of its own request."""
    first = sweep(_PLAIN, request_id="same", max_configurations=1)
    assert len(first) == 1
    (other,) = sweep(candidate('TUNE = {"WG": [64]}\nimport os'), request_id="same")
    assert other.outcome is EvaluationOutcome.PLAN_ERROR
    assert sweep(_PLAIN, request_id="same", seconds=0.001) == []
    assert sweep(_PLAIN, request_id="same", max_configurations=1) == first


def test_sweep_ends_with_its_budget(sweep: Swept) -> None:
    assert sweep(candidate('TUNE = {"WG": [64, 32]}'), seconds=0.001) == []


def test_listener_that_goes_away_ends_the_sweep(sweep: Swept) -> None:
    hangs = candidate('TUNE = {"WG": [64], "MODE": [0, 5, 6, 1]}', body=HOSTILE_BODY)
    request = SweepRequest(task=TASK, device="sycl:0", source=split(hangs), limits=LIMITS)

    async def one_result() -> ConfigurationResult:
        results = sweep.evaluator.sweep(request)
        try:
            return await anext(results)
        finally:
            await results.aclose()

    async def next_sweep() -> list[ConfigurationResult]:
        plain = SweepRequest(task=TASK, device="sycl:0", source=split(_PLAIN), limits=LIMITS)
        return [r async for r in sweep.evaluator.sweep(plain)]

    assert sweep._runner.run(one_result()).total == 4
    results = sweep._runner.run(asyncio.wait_for(next_sweep(), timeout=60))
    assert all(r.is_correct for r in results)


async def test_closing_the_evaluator_ends_its_sweeps() -> None:
    evaluator = LocalEvaluator(quick_settings(device_kinds=("null",), unsafe_no_sandbox=True))
    numbers = list(range(1, 61))
    text = candidate(f'TUNE = {{"WG": [64], "MM": {numbers}, "NN": {numbers[:10]}}}')
    results = evaluator.sweep(
        SweepRequest(task=TASK, device="null:0", source=split(text), limits=LIMITS)
    )
    first = await anext(results)
    await evaluator.close()
    rest = [result async for result in results]
    assert len(rest) + 1 < first.total == 600
