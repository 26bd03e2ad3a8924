"""What the checks that make a verdict trustworthy cost: their share of the time to a verdict.

Every verdict tells the wall time of its stages. Those that a bare evaluation would not have are
`policy`, `value_ranges`, `precision` and `data_flow`; comparison on fresh seeds, repeated runs and
timing belong to any. Each example is judged several times, built anew each time. The warm-up, with
the task's admission, is not counted. Writes JSON with device, date and commit.
Run: python benchmarks/check_cost.py --device sycl:0 [--repeats N] [--out FILE]
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.result_file import ROOT, parse_for_device, write_result
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.task_file import read_task

CHECKS = ("policy", "value_ranges", "precision", "data_flow")


def measure(foundry: Foundry, candidate: Path, device: str, repeats: int) -> dict[str, Any]:
    """Return the medians of seconds and stages of `repeats` verdicts on one example."""
    name, _, _ = candidate.name.partition(".")
    task = read_task(ROOT / "examples" / f"{name}.py")
    text = candidate.read_text()
    foundry.evaluate(task, text, device=device)
    rows = []
    for repeat in range(repeats):
        stamped = text.replace("```sycl\n", f"```sycl\n// {time.time()}\n").replace(
            "```cuda\n", f"```cuda\n// {time.time()}\n"
        )
        started_s = time.perf_counter()
        verdict = foundry.evaluate(task, stamped, device=device)
        seconds = time.perf_counter() - started_s
        if not verdict.passed or (verdict.compile and verdict.compile.cached):
            raise SystemExit(f"{candidate.name}, repeat {repeat}: {verdict.outcome}, or not built")
        rows.append((1e3 * seconds, {s.stage: s.wall_ms for s in verdict.stages}))
    totals = [total for total, _ in rows]
    costs = [sum(stages.get(name, 0.0) for name in CHECKS) for _, stages in rows]
    stages = {name: statistics.median(s.get(name, 0.0) for _, s in rows) for name in rows[0][1]}
    return {
        "candidate": candidate.name,
        "verdict_ms": statistics.median(totals),
        "checks_ms": statistics.median(costs),
        "ratio_to_bare": statistics.median(
            total / (total - cost) for total, cost in zip(totals, costs, strict=True)
        ),
        "stages_ms": stages,
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parse_for_device(parser, "check_cost")
    kind = arguments.device.partition(":")[0]
    with connect() as foundry:
        spec = next(d for d in foundry.capabilities().devices if d.id == arguments.device)
        rows = [
            measure(foundry, candidate, arguments.device, arguments.repeats)
            for candidate in sorted((ROOT / "examples").glob(f"*.{kind}.md"))
        ]
    for row in rows:
        print(f"{row['candidate']}: {row['verdict_ms']:.0f} ms, {row['ratio_to_bare']:.2f} × bare")
    worst = max(row["ratio_to_bare"] for row in rows)
    write_result(arguments.out, "check_cost", spec, {"worst_ratio": worst, "examples": rows})


if __name__ == "__main__":
    main()
