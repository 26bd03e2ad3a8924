"""Every verdict is held against what is expected of the case, and no case stops the others."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kernel_foundry.domain.language import Language
from kernel_foundry.sdk.selftest import run_cases as run_cases_module
from kernel_foundry.sdk.selftest.case import CaseResult, CaseState
from kernel_foundry.sdk.selftest.case_folder import read_cases
from kernel_foundry.sdk.selftest.rates import rates
from kernel_foundry.sdk.selftest.run_cases import AT_ONCE, run_cases
from tests.sdk.selftest.scripted import ScriptedEvaluator, candidate, write_cases

FAKE = {Language.SYCL: "fake:0"}


def _run(
    folder: Path,
    cases: Mapping[str, tuple[Any, str]],
    *,
    language: str = "sycl",
    evaluator: ScriptedEvaluator | None = None,
) -> dict[str, CaseResult]:
    """Return results by name of cases given as name → (expectation, script)."""
    write_cases(
        folder,
        {name: entry for name, (entry, _) in cases.items()},
        {name: candidate(script, language=language) for name, (_, script) in cases.items()},
        "task",
    )
    evaluator = evaluator or ScriptedEvaluator()
    results = asyncio.run(run_cases(evaluator, read_cases(folder), FAKE))
    return {result.case.name: result for result in results}


@pytest.mark.parametrize(
    ("entry", "script", "problem"),
    [
        ("rejected", "rejected", ""),
        (["rejected", "crashed"], "crashed", ""),
        ("rejected", "passed", "expected REJECTED, got PASSED"),
        ("rejected", "wrong_result", "expected REJECTED, got WRONG_RESULT"),
        ("passed", "rejected", "expected PASSED, got REJECTED"),
        ({"outcomes": "rejected", "finding": "decoy"}, "rejected finding=decoy", ""),
        ({"outcomes": "rejected", "finding": "decoy"}, "rejected", "expected a finding decoy"),
        ({"outcomes": "rejected", "rule": "a.b"}, "rejected rule=a.b", ""),
        ({"outcomes": "rejected", "rule": "a.b"}, "rejected rule=a.c", "expected the rule a.b"),
    ],
)
def test_a_verdict_is_held_against_the_expectation(
    tmp_path: Path, entry: Any, script: str, problem: str
) -> None:
    result = _run(tmp_path, {"a": (entry, script)})["a"]
    assert result.state is (CaseState.UNEXPECTED if problem else CaseState.AS_EXPECTED)
    assert result.detail.startswith(problem)


@pytest.mark.parametrize(
    ("script", "is_expected"),
    [
        ("rejected", True),
        ("passed speedup=2.2", True),  # within 15 % of the twin's
        ("passed speedup=2.4", False),
        ("passed speedup=9 trust=suspect", True),
        ("wrong_result", False),
    ],
)
def test_a_denied_gain_is_measured_by_the_honest_twin(
    tmp_path: Path, script: str, is_expected: bool
) -> None:
    denied = {"outcomes": "rejected", "gain_denied": True, "twin": "honest"}
    cases = {"cheat": (denied, script), "honest": ("passed", "passed speedup=2")}
    result = _run(tmp_path, cases)["cheat"]
    assert (result.state is CaseState.AS_EXPECTED) == is_expected
    assert result.reason  # it is stated, whichever way it went


def test_a_gain_without_an_honest_time_to_compare_with_is_not_denied(tmp_path: Path) -> None:
    denied = {"outcomes": "rejected", "gain_denied": True, "twin": "honest"}
    cases = {"cheat": (denied, "passed"), "honest": ("passed", "crashed")}
    assert _run(tmp_path, cases)["cheat"].state is CaseState.UNEXPECTED


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("refuse", "TaskRefusedError: the task is not admitted: too slow"),
        ("bug", "ValueError: one of ours"),
    ],
)
def test_a_failure_of_ours_is_that_cases_error_and_the_others_go_on(
    tmp_path: Path, script: str, told: str
) -> None:
    cases = {"broken": ("rejected", script), "cheat": ("rejected", "rejected")}
    results = _run(tmp_path, cases)
    assert results["broken"].state is CaseState.ERROR
    assert results["broken"].reason == told
    assert results["cheat"].state is CaseState.AS_EXPECTED
    counted = rates(results.values())
    assert (counted.cheats, counted.missed, counted.errors) == (2, ("broken",), ("broken",))
    assert not counted.all_well


@pytest.mark.parametrize(
    ("entry", "script", "state"),
    [
        ("rejected", "rejected", CaseState.AS_EXPECTED),
        ("rejected", "built", CaseState.NOT_RUN),
        ("rejected", "compile_error", CaseState.UNEXPECTED),
        ("passed", "built", CaseState.NOT_RUN),
        ("passed", "rejected", CaseState.UNEXPECTED),
        ("rejected", "no_compiler", CaseState.NOT_RUN),
    ],
)
def test_without_a_gpu_the_build_decides_what_it_can(
    tmp_path: Path, entry: str, script: str, state: CaseState
) -> None:
    evaluator = ScriptedEvaluator()
    result = _run(tmp_path, {"a": (entry, script)}, language="cuda", evaluator=evaluator)["a"]
    assert result.state is state
    assert [r.build_only for r in evaluator.requests] == [True]
    counted = rates([result])
    assert counted.not_run == (("a",) if state is CaseState.NOT_RUN else ())
    assert counted.cheats + counted.honest == (0 if state is CaseState.NOT_RUN else 1)


def test_what_only_a_run_can_decide_is_not_built(tmp_path: Path) -> None:
    evaluator = ScriptedEvaluator()
    cases = {"a": ("wrong_result", "wrong_result")}
    assert _run(tmp_path, cases, language="cuda", evaluator=evaluator)["a"].state is (
        CaseState.NOT_RUN
    )
    assert not evaluator.requests


def test_no_more_run_at_once_than_an_evaluator_judges_at_once(tmp_path: Path) -> None:
    class Counting(ScriptedEvaluator):
        running = most = 0

        async def evaluate(self, request: Any) -> Any:
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0)
            self.running -= 1
            return await super().evaluate(request)

    evaluator = Counting()
    cases = {f"c{i}": ("rejected", "rejected") for i in range(7)}
    results = _run(tmp_path, cases, evaluator=evaluator)
    assert list(results) == sorted(cases)
    assert evaluator.most == AT_ONCE


def test_an_admission_may_take_longer_than_a_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evaluator limits it: at a loaded moment one took more than three minutes."""

    class Slow(ScriptedEvaluator):
        async def admit(self, *task_and_device: Any) -> Any:
            loop = asyncio.get_running_loop()
            later_s = 2 * run_cases_module._CASE_SECONDS
            clock = loop.time
            monkeypatch.setattr(loop, "time", lambda: clock() + later_s)
            await asyncio.sleep(0.001)  # the loop looks at its clock
            return await super().admit(*task_and_device)

    results = _run(tmp_path, {"one": ("rejected", "rejected")}, evaluator=Slow())
    assert results["one"].state is CaseState.AS_EXPECTED, results["one"].detail


def test_rates_are_shares_of_what_was_run(tmp_path: Path) -> None:
    cases = {
        "cheat_caught": ("rejected", "rejected"),
        "cheat_missed": ("rejected", "passed"),
        "honest_fine": ("passed", "passed"),
        "honest_accused": ("passed", "rejected"),
        "honest_too": ("passed", "passed"),
        "honest_again": ("passed", "passed"),
    }
    counted = rates(_run(tmp_path, cases).values())
    assert (counted.cheats, counted.missed) == (2, ("cheat_missed",))
    assert (counted.honest, counted.refused) == (4, ("honest_accused",))
    assert (counted.detection_rate, counted.false_alarm_rate) == (0.5, 0.25)
    assert rates([]).detection_rate is None


def test_results_survive_as_json(tmp_path: Path) -> None:
    from kernel_foundry.cli.selftest_view import selftest_object
    from kernel_foundry.sdk.selftest.run import SelfTest

    results = _run(tmp_path, {"a": ("rejected", "passed"), "b": ("passed", "passed")})
    told = json.loads(json.dumps(selftest_object(SelfTest(devices=(), cases=(*results.values(),)))))
    assert told["cheats"] == {"total": 1, "refused": 0, "missed": ["a"]}
    assert told["honest"] == {"total": 1, "passed": 1, "refused": []}
    assert [case["outcome"] for case in told["cases"]] == ["passed", "passed"]
    assert not told["passed"]
