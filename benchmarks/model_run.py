"""Best speed-ups of exported runs after 1, 4, 8 and 16 evaluations, and over all runs.

    python -m benchmarks.model_run benchmarks/runs/h200_*.jsonl.gz

Reads what `kfoundry runs export` wrote, and measures nothing. A run does not tell what its device
is called: say it.
"""

import argparse
import datetime
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.archive_runs import RecordedRun, read_recorded
from benchmarks.result_file import commit, out_option
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import Evaluation

_AFTER = (1, 4, 8, 16)


def main() -> None:
    """Write the table of the runs given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="files of `kfoundry runs export`")
    parser.add_argument("--device", required=True, help='such as "NVIDIA H200"')
    parser.add_argument("--driver", required=True, help='such as "580.159.04 (CUDA 13.0)"')
    parser.add_argument("--commit", default=commit(), help="of the code that made the runs")
    out_option(parser, "model_run")
    arguments = parser.parse_args()
    runs = {}
    for path in arguments.runs:
        with tempfile.TemporaryDirectory() as folder:
            run = read_recorded(Path(folder), path)
        runs[run.spec.name] = _measured(run)
    ends = [run["best_after"]["end"] for run in runs.values()]
    result = {
        "benchmark": "model_run",
        "device": arguments.device,
        "driver": arguments.driver,
        "date": max(run["date"] for run in runs.values()),
        "commit": arguments.commit,
        "what": "best speed-up over the fastest of eager, torch.compile and CUDA graph, of trusted "
        "verdicts as archived in the run, after so many evaluations",
        "geometric_mean": round(statistics.geometric_mean(ends), 2),
        "median": round(statistics.median(ends), 2),
        "runs": runs,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    for name, measured in runs.items():
        print(f"{name}: {measured['best_after']}")
    print(f"geometric mean {result['geometric_mean']}, median {result['median']}")


def _measured(run: RecordedRun) -> dict[str, Any]:
    verdicts = [verdict for _, verdict in run.verdicts]
    best: list[float] = []
    for verdict in verdicts:
        best.append(max(_speedup(verdict), best[-1] if best else 0.0))
    reached = {str(count): round(best[count - 1], 2) for count in _AFTER if count <= len(best)}
    return {
        "models": list(run.spec.models),
        "date": _date(verdicts),
        "evaluations": len(verdicts),
        "best_after": {**reached, "end": round(best[-1], 2)},
        "verdicts": [
            {
                "operator": candidate.operator.value,
                "outcome": verdict.outcome.value,
                "trust": verdict.trust.value,
                "speedup": None if verdict.speedup is None else round(verdict.speedup, 2),
                "arithmetic": verdict.arithmetic,
            }
            for candidate, verdict in run.verdicts
        ],
    }


def _date(verdicts: list[Evaluation]) -> str:
    """When the last verdict that passed was signed."""
    signed = [v.attestation.signed_unix_s for v in verdicts if v.attestation is not None]
    return datetime.datetime.fromtimestamp(max(signed), datetime.UTC).isoformat(timespec="seconds")


def _speedup(verdict: Evaluation) -> float:
    """What a verdict counts for: 0 unless it passed with full trust."""
    is_trusted = verdict.passed and verdict.trust is Trust.FULL
    return (verdict.speedup or 0.0) if is_trusted else 0.0


if __name__ == "__main__":
    main()
