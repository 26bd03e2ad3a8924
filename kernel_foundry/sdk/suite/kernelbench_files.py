"""A suite's results as KernelBench's own files, which its analysis reads.

`eval_results.json` has the winner of each run as a sample, times in milliseconds, -1 where nothing
was timed. `baseline_time_KIND.json` has the baselines that were timed beside them. Of a task with
several timed workloads the first one stands there, since KernelBench has one. `compiled` says what
`correctness` says: what failed in a run is no sample.
Source: KernelBench, `src/kernelbench/eval.py` and `scripts/eval_from_generations.py` (423217d).
"""

import re
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kernel_foundry.domain.evaluation import Timing, WorkloadResult
from kernel_foundry.sdk.suite.results import EntryResult

_NAME: Final = re.compile(r"(?:level_?(?P<level>[0-9]{1,9})_)?(?P<problem>[0-9]{1,9})_.*")
_NOT_TIMED: Final = -1.0
_NS_PER_MS: Final = 1e6


def level_of(task: str) -> str:
    """Return KernelBench's level in the name of a task, "" where it names none."""
    found = _NAME.fullmatch(task)
    return found["level"] or "" if found else ""


def eval_results(results: Sequence[EntryResult]) -> dict[str, list[dict[str, Any]]]:
    """Return the object of an `eval_results.json`: samples by problem id.

    The id is the number in a task's name, as in `level1_19_ReLU` or `19_ReLU`; tasks without one
    have their whole name.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        found.setdefault(_problem_of(result.entry.task.name), []).append(_sample(result))
    return found


def baseline_times(results: Iterable[EntryResult], baseline: str) -> dict[str, dict[str, Any]]:
    """Return the object of a `baseline_time_KIND.json`: times by level and file name."""
    found: dict[str, dict[str, Any]] = {}
    for result in results:
        timed = _timed(result)
        times = [b.timing for b in timed.baselines if b.name == baseline] if timed else []
        if times:
            level = f"level{level_of(result.entry.task.name) or 1}"
            name = re.sub(r"^level_?\d+_", "", result.entry.task.name)
            found.setdefault(level, {})[f"{name}.py"] = _times(times[0], result)
    return found


def _problem_of(task: str) -> str:
    found = _NAME.fullmatch(task)
    return str(int(found["problem"])) if found else task


def _sample(result: EntryResult) -> dict[str, Any]:
    timed = _timed(result)
    metadata: dict[str, Any] = {"run": result.entry.run, "state": result.entry.state.value}
    if result.entry.progress.reason:
        metadata["reason"] = result.entry.progress.reason
    if timed is not None:
        metadata["workload"] = timed.workload
    times = _times(timed.timing, result) if timed and timed.timing else {}
    return {
        "sample_id": result.entry.repeat,
        "compiled": result.verdict is not None,
        "correctness": result.verdict is not None,
        "metadata": metadata,
        "runtime": times.get("mean", _NOT_TIMED),
        "runtime_stats": times,
    }


def _timed(result: EntryResult) -> WorkloadResult | None:
    if result.verdict is None:
        return None
    return next(w for w in result.verdict.workloads if w.timing is not None)


def _times(timing: Timing, result: EntryResult) -> dict[str, Any]:
    samples = [sample / _NS_PER_MS for sample in timing.samples_ns]
    return {
        "mean": statistics.fmean(samples),
        "std": statistics.stdev(samples) if len(samples) > 1 else 0.0,
        "min": min(samples),
        "max": max(samples),
        "num_trials": len(samples),
        "hardware": result.entry.progress.device,
        "device": result.entry.progress.device,
    }
