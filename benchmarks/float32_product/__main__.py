"""Three candidates of one float32 product: FMA, three bf16 products, the library; and who wins.

Each is judged by the real evaluator and added to a run. The split one does the arithmetic of a
third of the units' 16-bit rate and passes the same checks, so it has to be the run's best, and
nothing may end the run. Exit code 1 where it is not so.
Run on a GPU host: python -m benchmarks.float32_product [--device cuda:0] [--out FILE]
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.result_file import out_option, write_result
from kernel_foundry.domain.archive import DEFAULT_STRATEGY, RunSpec
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.loop.budget import Budget, BudgetUse, stop_cause
from kernel_foundry.sdk.services import Targets
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.sdk.verdict_text import duration, share_text, speedup_text, timing_text

NAME: Final = "float32_product"
FOLDER: Final = Path(__file__).parent
CANDIDATES: Final = ("library", "split", "fma")
EXPECTED_BEST: Final = "split"
RUN: Final = "three-ways"


def main() -> int:
    """Judge, archive, print and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0", help="where to measure (cuda:0)")
    out_option(parser, NAME)
    arguments = parser.parse_args()
    task = read_task(FOLDER / "product.py")
    texts = {name: (FOLDER / f"{name}.cuda.md").read_text() for name in CANDIDATES}
    with tempfile.TemporaryDirectory() as folder:
        targets = Targets(store=f"sqlite:///{folder}/runs.db")
        with connect(targets) as foundry:
            admission = foundry.admit(task, device=arguments.device)
            verdicts = {
                name: foundry.evaluate(task, text, device=arguments.device)
                for name, text in texts.items()
            }
            for name, verdict in verdicts.items():
                _show(name, verdict)
            best = _best_of_run(foundry, task, texts, verdicts, device=arguments.device)
    cause = stop_cause(Budget(), BudgetUse(evaluations=len(verdicts), traffic_bound_share=1.0))
    print(f"best of the run: {best or 'none'}; the run {'goes on' if cause is None else cause}")
    measured = {
        "expected_best": EXPECTED_BEST,
        "best": best,
        "arithmetic_unit": admission.workloads[0].arithmetic_unit,
        "traffic_bound_ns": admission.workloads[0].traffic_bound_ns,
        "arithmetic_estimate_ns": admission.workloads[0].arithmetic_estimate_ns,
        "baselines_ns": {b.name: b.timing.median_ns for b in admission.workloads[0].baselines},
        "candidates": {name: _figures(verdict) for name, verdict in verdicts.items()},
    }
    write_result(arguments.out, NAME, admission.device, measured)
    return 0 if best == EXPECTED_BEST and cause is None else 1


def _best_of_run(
    foundry: Foundry,
    task: Task,
    texts: dict[str, str],
    verdicts: dict[str, Evaluation],
    *,
    device: str,
) -> str:
    """Tell the verdicts to a run; return which one it announces, the same in every place."""
    spec = RunSpec(
        name=RUN,
        task=task,
        language=Language.CUDA,
        device=device,
        models=("by hand",),
        strategy=DEFAULT_STRATEGY,
        seed=0,
    )
    foundry.ask_archive(lambda archive: archive.create_run(spec))
    digests = {}
    for name, verdict in verdicts.items():
        candidate = Candidate(source=split(texts[name]))
        digests[candidate.digest] = name
        _tell(foundry, candidate, verdict)
    best = foundry.best(RUN)
    (listed,) = foundry.runs()
    assert listed.best_speedup == best.evaluation.speedup, "`runs list` names another one"
    return digests[best.candidate.digest]


def _tell(foundry: Foundry, candidate: Candidate, verdict: Evaluation) -> None:
    foundry.ask_archive(
        lambda archive: archive.add(RUN, candidate, verdict, request_id=candidate.digest)
    )


def _show(name: str, verdict: Evaluation) -> None:
    print(f"{name}: {verdict.outcome.name}")
    for result in verdict.workloads:
        if result.timing is None:
            continue
        precision = result.correctness.precision if result.correctness else None
        bits = f"{precision.effective_bits:.1f}" if precision else "–"
        print(
            f"  {timing_text(result.timing)}, {speedup_text(result.speedup)}, {bits} bits, "
            f"{share_text(result.traffic_bound_share)} of the traffic bound "
            f"({duration(result.traffic_bound_ns)}), "
            f"{share_text(result.arithmetic_estimate_share)} of the arithmetic estimate "
            f"({duration(result.arithmetic_estimate_ns)})"
        )
    for finding in verdict.findings:
        print(f"  {finding.severity.value}: {finding.message.splitlines()[0]}")


def _figures(verdict: Evaluation) -> dict[str, Any]:
    timed = next((w for w in verdict.workloads if w.timing is not None), None)
    if timed is None or timed.timing is None:
        return {"outcome": verdict.outcome.name}
    precision = timed.correctness.precision if timed.correctness else None
    return {
        "outcome": verdict.outcome.name,
        "median_ns": timed.timing.median_ns,
        "ci95_ns": list(timed.timing.ci95_ns),
        "speedup": timed.speedup,
        "fitness": verdict.fitness,
        "effective_bits": precision.effective_bits if precision else None,
        "traffic_bound_share": timed.traffic_bound_share,
        "arithmetic_estimate_share": timed.arithmetic_estimate_share,
    }


if __name__ == "__main__":
    sys.exit(main())
