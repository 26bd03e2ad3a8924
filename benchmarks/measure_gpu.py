"""All that is told of a GPU, measured at one commit in one call: tests, self-test, benchmarks.

Steps run one after the other, each within its own limit; one that fails or is ended does not stop
the others. Results and logs lie in one folder, with a table of all steps as `steps.json`.
A copy of the source without its history says which commit it is in a file `COMMIT`.
Run on a GPU host: python -m benchmarks.measure_gpu --out FOLDER [--steps NAME ...]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.result_file import ROOT, commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command."""

    name: str
    seconds: float
    """After which it is ended."""
    command: tuple[str, ...]
    """What Python runs; `{out}` stands for the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """How one step ended."""

    name: str
    exit_code: int | None
    """None: it was ended after its time."""
    seconds: float


def _benchmark(name: str, seconds: float, *options: str, file: str = "") -> Step:
    out = ("--out", f"{{out}}/{file or name}.json")
    return Step(name=name, seconds=seconds, command=("-m", f"benchmarks.{name}", *options, *out))


_PYTEST: Final = ("-m", "pytest", "-q", "-m", "gpu", "--require-gpu", "--no-header")
_CUDA: Final = ("--device", "cuda:0")
STEPS: Final = (
    Step(name="tests_native", seconds=240, command=(*_PYTEST, "tests/native", "tests/judge")),
    Step(name="tests_runner", seconds=300, command=(*_PYTEST, "tests/runner", "tests/tools")),
    _benchmark("verdict_vs_torch", 240, "--peer-times", "1"),
    _benchmark("repeatability", 120, "--seconds", "90"),
    _benchmark("sweep_gemm", 60, "--skip-kernel-tuner"),
    _benchmark("float32_product", 60, *_CUDA),
    _benchmark("arithmetic_estimate", 60, *_CUDA),
    _benchmark("bad_candidates", 60),
    _benchmark("check_cost", 120, *_CUDA, file="check_cost_cuda"),
    _benchmark("selftest", 600, *_CUDA, file="selftest_cuda"),
    Step(name="tests_all", seconds=900, command=(*_PYTEST, "tests")),
)
DEFAULT: Final = tuple(step.name for step in STEPS if step.name != "tests_all")


def run_step(step: Step, out: Path) -> StepResult:
    """Run a step; what it prints goes to a log of its name in `out`."""
    command = [sys.executable, *(word.format(out=out) for word in step.command)]
    started_s = time.monotonic()
    with (out / f"{step.name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code: int | None = process.wait(step.seconds)
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return StepResult(name=step.name, exit_code=code, seconds=time.monotonic() - started_s)


def main() -> int:
    """Run the chosen steps; exit code 1 when one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of results and logs")
    parser.add_argument(
        "--steps", nargs="+", choices=[step.name for step in STEPS], default=list(DEFAULT)
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = []
    for step in STEPS:
        if step.name in arguments.steps:
            results.append(run_step(step, arguments.out.resolve()))
            # Written anew each time: a call that is cut leaves what it has.
            told = {"commit": commit(), "steps": [asdict(result) for result in results]}
            (arguments.out / "steps.json").write_text(json.dumps(told, indent=1) + "\n")
    for result in results:
        ended = "ended" if result.exit_code is None else f"exit {result.exit_code}"
        print(f"{result.name:20} {ended:8} {result.seconds:7.1f} s")
    return int(any(result.exit_code != 0 for result in results))


if __name__ == "__main__":
    sys.exit(main())
