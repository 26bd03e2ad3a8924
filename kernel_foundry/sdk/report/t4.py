"""A sweep as T4 results: the exchange format of autotuners, which Kernel Tuner's tools read.

Source: Open Autotuning Results Schema (T4), results-schema.json 1.0.0.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from kernel_foundry.domain.sweep import ConfigurationResult

SCHEMA_VERSION: Final = "1.0.0"
OBJECTIVE: Final = "time"
"""Name of the measurement that counts; less is better."""


def t4_results(results: Iterable[ConfigurationResult]) -> dict[str, Any]:
    """Return the T4 object of a sweep: one result for each configuration, times in ms."""
    return {"schema_version": SCHEMA_VERSION, "results": [_result(r) for r in results]}


def _result(result: ConfigurationResult) -> dict[str, Any]:
    times = result.times
    finished = datetime.fromtimestamp(result.finished_unix_s, tz=UTC)
    return {
        "timestamp": finished.isoformat(timespec="milliseconds"),
        "configuration": {s.name: _value(s.value) for s in result.configuration},
        "objectives": [OBJECTIVE],
        "times": {
            "compilation_time": times.compile_ms,
            "runtimes": [1e-6 * sample for t in result.timings for sample in t.timing.samples_ns],
            "framework": times.framework_ms + times.load_ms,
            "search_algorithm": 0.0,
            "validation": times.verification_ms,
        },
        "invalidity": result.validity.value,
        "correctness": 1 if result.is_correct else 0,
        "measurements": _measurements(result),
    }


def _measurements(result: ConfigurationResult) -> list[dict[str, Any]]:
    measured: list[tuple[str, float | None, str]] = [
        (OBJECTIVE, _milliseconds(result.median_ns), "ms"),
        *((f"time_{t.workload}", 1e-6 * t.timing.median_ns, "ms") for t in result.timings),
        ("speedup", result.speedup, ""),
        *((f"registers_{r.kernel}", r.registers, "") for r in result.resources),
        *((f"shared_bytes_{r.kernel}", r.shared_bytes, "B") for r in result.resources),
    ]
    return [
        {"name": name, "value": value, "unit": unit}
        for name, value, unit in measured
        if value is not None
    ]


def _milliseconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else 1e-6 * nanoseconds


def _value(text: str) -> int | float | bool | str:
    if text in ("True", "False"):
        return text == "True"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
