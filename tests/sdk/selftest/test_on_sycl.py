"""The whole self-test on a real device: probes, three cases, their counts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.probing import device_task as known
from kernel_foundry.cli.selftest_view import selftest_object
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.candidate_text import render
from kernel_foundry.sdk.selftest.case_folder import read_cases
from kernel_foundry.sdk.selftest.run import SelfTest, selftest
from tests.sdk.selftest.scripted import write_cases

pytestmark = pytest.mark.sycl

EXPECTED = {
    "device_probe_honest": "passed",
    "device_probe_zeros": ["wrong_result", "rejected"],
    "device_probe_unexpected": {"outcomes": "rejected", "row": 1},
}


async def test_probes_pass_and_cases_are_counted(
    local_evaluator: Callable[[str], LocalEvaluator], tmp_path: Path
) -> None:
    bodies = {
        "device_probe_honest": known.RIGHT,
        "device_probe_zeros": "out[i] = 0.0f;",
        "device_probe_unexpected": "out[i] = 2.0f * x[i];",
    }
    texts = {name: render(known.candidate(Language.SYCL, body)) for name, body in bodies.items()}
    folder = write_cases(tmp_path / "cases", EXPECTED, texts)
    (folder / "device_probe.py").write_text(known.TASK.reference)  # is admitted only once
    heard: list[str] = []
    found: SelfTest = await selftest(
        local_evaluator("sycl"),
        cases=read_cases(folder),
        listener=lambda result: heard.append(result.case.name),
    )
    told = selftest_object(found)
    failed = [name for name, probe in told["probes"].items() if not probe["passed"]]
    # What the timer's probes say depends on the host's other work.
    assert [name for name in failed if not name.startswith("timer.")] == []
    assert {"device.known_values@sycl:0", "timer.proportional@sycl:0"} <= set(told["probes"])
    assert told["cheats"] == {"total": 2, "refused": 1, "missed": ["device_probe_unexpected"]}
    assert told["honest"] == {"total": 1, "passed": 1, "refused": []}
    assert sorted(heard) == sorted(EXPECTED)
    reasons = {case["name"]: case["reason"] for case in told["cases"]}
    assert reasons["device_probe_zeros"]
    assert reasons["device_probe_honest"] == ""
