"""Candidates of at most 60 lines over our blocks, judged beside what PyTorch has, against bars.

Products, attention and convolution against the library's (cuBLAS and cuDNN by PyTorch eager,
compiled and as a CUDA graph, whichever is fastest), rows against the traffic bound. Exit code 1
where a bar is missed or a candidate fails.
Run on a GPU host: python -m benchmarks.blocks [--device cuda:0] [--out FILE]
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.result_file import out_option, write_result
from kernel_foundry.domain.evaluation import WorkloadResult
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.sdk.verdict_text import duration

NAME: Final = "blocks"
FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a candidate's first configuration has to reach."""

    text: str
    reached: Callable[[WorkloadResult], float | None]
    """The measured figure; None where it was not measured."""
    least: float
    least_bits: float = 0.0


def _speedup(result: WorkloadResult) -> float | None:
    return result.speedup


def _traffic(result: WorkloadResult) -> float | None:
    return result.traffic_bound_share


BARS: Final = {
    "bf16_product": Bar(text="of the library's speed", reached=_speedup, least=0.85),
    "float32_product": Bar(
        text="times the library's speed", reached=_speedup, least=2.5, least_bits=20.0
    ),
    "attention": Bar(text="of the library's speed", reached=_speedup, least=0.75),
    "conv2d": Bar(text="times the library's speed", reached=_speedup, least=2.0, least_bits=20.0),
    "softmax": Bar(text="of the traffic bound", reached=_traffic, least=0.9),
    "layer_norm": Bar(text="of the traffic bound", reached=_traffic, least=0.9),
    "cross_entropy": Bar(text="of the traffic bound", reached=_traffic, least=0.9),
}


def main() -> int:
    """Judge, print and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0", help="where to measure (cuda:0)")
    out_option(parser, NAME)
    arguments = parser.parse_args()
    with connect() as foundry:
        device = foundry.admit(read_task(FOLDER / "softmax.py"), device=arguments.device).device
        measured = {
            name: _judge(foundry, name, bar, arguments.device) for name, bar in BARS.items()
        }
    write_result(arguments.out, NAME, device, {"candidates": measured})
    return 0 if all(figures["is_reached"] for figures in measured.values()) else 1


def _judge(foundry: Foundry, name: str, bar: Bar, device: str) -> dict[str, Any]:
    text = (FOLDER / f"{name}.cuda.md").read_text("utf-8")
    verdict = foundry.evaluate(read_task(FOLDER / f"{name}.py"), text, device=device)
    timed = next((w for w in verdict.workloads if w.timing is not None), None)
    figures: dict[str, Any] = {
        "outcome": verdict.outcome.name,
        "lines": sum(1 for line in text.splitlines() if line.strip()),
        "least": bar.least,
        "least_bits": bar.least_bits,
        "is_reached": False,
    }
    for finding in verdict.findings:
        print(f"  {finding.severity.value}: {finding.message.splitlines()[0]}")
    if timed is None or timed.timing is None:
        print(f"{name}: {verdict.outcome.name}")
        return figures
    reached = bar.reached(timed)
    precision = timed.correctness.precision if timed.correctness else None
    bits = precision.effective_bits if precision else None
    figures |= {
        "median_ns": timed.timing.median_ns,
        "ci95_ns": list(timed.timing.ci95_ns),
        "baselines_ns": {b.name: b.timing.median_ns for b in timed.baselines},
        "traffic_bound_share": timed.traffic_bound_share,
        "effective_bits": bits,
        "reached": reached,
        "is_reached": verdict.passed
        and (reached or 0.0) >= bar.least
        and (bits or 0.0) >= bar.least_bits,
    }
    shown = "not measured" if reached is None else f"{reached:.3f}"
    print(
        f"{name}: {verdict.outcome.name}, {duration(timed.timing.median_ns)}, {shown} {bar.text} "
        f"(bar {bar.least}), bits {'–' if bits is None else f'{bits:.1f}'}"
    )
    return figures


if __name__ == "__main__":
    sys.exit(main())
