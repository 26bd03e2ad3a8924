"""A suite's results as KernelBench's own files, which its analysis reads.

`eval_results.json` has the winner of each run as a sample, times in milliseconds, -1 where nothing
was timed. `baseline_time_KIND.json` has the baselines that were timed beside them, and of tasks
that were not solved those of the admission: the analysis pairs the two files by position. Of a
task with several timed workloads the first one stands there, since KernelBench has one.
Source: KernelBench, `src/kernelbench/eval.py`, `scripts/eval_from_generations.py` and
`scripts/benchmark_eval_analysis.py` (423217d).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kernel_foundry.domain.evaluation import WorkloadResult
from kernel_foundry.sdk.suite.results import EntryResult
from kernel_foundry.sdk.suite.sample_times import SampleTimes

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


def baseline_names(results: Iterable[EntryResult]) -> tuple[str, ...]:
    """Return the names of the baselines that some task has."""
    return tuple(dict.fromkeys(name for result in results for name in _baselines(result)))


def baseline_times(results: Iterable[EntryResult], baseline: str) -> dict[str, dict[str, Any]]:
    """Return the object of a `baseline_time_KIND.json`: times by level and file name.

    Every task that was admitted with this baseline has one, of its first repeat.
    """
    found: dict[str, dict[str, Any]] = {}
    for result in results:
        times = _baselines(result).get(baseline)
        if times is not None:
            level = f"level{level_of(result.entry.task.name) or 1}"
            name = re.sub(r"^level\d+_", "", result.entry.task.name)
            found.setdefault(level, {}).setdefault(f"{name}.py", _object(times, result))
    return found


def _baselines(result: EntryResult) -> dict[str, SampleTimes]:
    """Those beside the winner, and others as they were at the admission."""
    admitted = {baseline.name: baseline.times for baseline in result.entry.progress.baselines}
    timed = _timed(result)
    beside = {} if timed is None else {b.name: SampleTimes.of(b.timing) for b in timed.baselines}
    return admitted | beside


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
    times = _object(SampleTimes.of(timed.timing), result) if timed and timed.timing else {}
    return {
        "sample_id": result.entry.repeat,
        "compiled": result.has_compiled,
        "correctness": result.verdict is not None,
        "metadata": metadata,
        "runtime": times.get("mean", _NOT_TIMED),
        "runtime_stats": times,
    }


def _timed(result: EntryResult) -> WorkloadResult | None:
    if result.verdict is None:
        return None
    return next(w for w in result.verdict.workloads if w.timing is not None)


def _object(times: SampleTimes, result: EntryResult) -> dict[str, Any]:
    progress = result.entry.progress
    return {
        "mean": times.mean_ns / _NS_PER_MS,
        "std": times.stdev_ns / _NS_PER_MS,
        "min": times.least_ns / _NS_PER_MS,
        "max": times.most_ns / _NS_PER_MS,
        "num_trials": times.count,
        "hardware": progress.hardware or progress.device,
        "device": progress.device,
    }
