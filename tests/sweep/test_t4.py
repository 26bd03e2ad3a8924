"""T4 results: what the schema asks for, and what Kernel Tuner's tools read."""

import json
from datetime import datetime

import pytest

from kernel_foundry.domain.evaluation import (
    EvaluationOutcome,
    KernelResources,
    Setting,
)
from kernel_foundry.domain.sweep import (
    ConfigurationResult,
    ConfigurationTimes,
    ConfigurationTiming,
    Validity,
)
from kernel_foundry.sdk.report.t4 import t4_results
from tests.domain_values import timing_of

_INVALIDITIES = {"timeout", "compile", "runtime", "correctness", "constraints", "correct"}


def _result(validity: Validity) -> ConfigurationResult:
    timing = timing_of(3e6, samples_ns=(2e6, 4e6), ci95_ns=(2e6, 4e6))
    is_right = validity is Validity.CORRECT
    return ConfigurationResult(
        configuration=tuple(
            Setting(name=name, value=value)
            for name, value in {"WG": "64", "UNROLL": "True", "SCALE": "0.5", "T": "float4"}.items()
        ),
        validity=validity,
        outcome=EvaluationOutcome.PASSED if is_right else EvaluationOutcome.CRASHED,
        times=ConfigurationTimes(
            compile_ms=100.0, load_ms=2.0, verification_ms=5.0, benchmark_ms=40.0, framework_ms=1.0
        ),
        timings=(ConfigurationTiming(workload="default", timing=timing),) if is_right else (),
        speedup=2.0 if is_right else None,
        resources=(
            KernelResources(
                kernel="k", registers=32, shared_bytes=1024, local_bytes=0, spill_bytes=0
            ),
        ),
        finished_unix_s=1_700_000_000.0,
        total=2,
    )


@pytest.mark.parametrize("validity", Validity)
def test_every_result_has_the_fields_of_the_schema(validity: Validity) -> None:
    text = json.dumps(t4_results([_result(validity)]), allow_nan=False)
    written = json.loads(text)
    assert written["schema_version"] == "1.0.0"
    (result,) = written["results"]
    assert {"configuration", "times", "invalidity", "correctness"} <= result.keys()
    assert datetime.fromisoformat(result["timestamp"]).timestamp() == 1_700_000_000.0
    assert result["configuration"] == {"WG": 64, "UNROLL": True, "SCALE": 0.5, "T": "float4"}
    assert result["objectives"] == ["time"]
    assert result["invalidity"] in _INVALIDITIES
    assert result["correctness"] == (1 if validity is Validity.CORRECT else 0)
    numbers = ("compilation_time", "framework", "search_algorithm", "validation")
    assert all(isinstance(result["times"][name], float) for name in numbers)
    assert all(m.keys() == {"name", "value", "unit"} for m in result["measurements"])


def test_times_are_milliseconds_and_the_objective_is_the_median() -> None:
    (result,) = t4_results([_result(Validity.CORRECT)])["results"]
    assert result["times"]["runtimes"] == pytest.approx([2.0, 4.0])
    assert result["times"]["compilation_time"] == 100.0
    measured = {m["name"]: (m["value"], m["unit"]) for m in result["measurements"]}
    assert measured["time"] == (pytest.approx(3.0), "ms")
    assert measured["speedup"] == (2.0, "")
    assert measured["registers_k"] == (32, "")


def test_failed_configuration_has_no_time() -> None:
    (result,) = t4_results([_result(Validity.RUNTIME)])["results"]
    assert result["times"]["runtimes"] == []
    assert "time" not in {m["name"] for m in result["measurements"]}
