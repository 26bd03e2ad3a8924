"""Every variant of a recipe measured once for real, as a landscape for search experiments.

The fastest ones are measured again, minutes later, and keep all their samples: the best of hundreds
of single measurements would be the luckiest one.

Run: python -m landscapes.record TASK_FILE --language cuda --device cuda:0 --most 600
     --out FILE.jsonl.gz [--seed N] [--in-flight N] [--minutes M]

A killed recording loses nothing: its rows stand in FILE.jsonl.gz.rows, and the same command goes
on behind them. docs/landscapes.md has the format.
"""

import argparse
import asyncio
import datetime
import gzip
import itertools
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.settings import EvaluatorSettings
from generator_svc.recipes.genome import Genome, plain
from generator_svc.recipes.graph_reader import read_graph
from generator_svc.recipes.recipe import Recipe
from generator_svc.recipes.recipes import choose_recipe
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.whole_file import replace_file

LIMITS: Final = EvaluationLimits(timing_seconds=0.2)
"""Hundreds of variants are measured; the median of the slow ones need not be known to 1 %."""

_FAILURES_IN_A_ROW: Final = 5
"""Evaluations that fail for our own reasons; so many end a recording, which can be resumed."""

MEASUREMENTS: Final = 3
"""Of each of the fastest variants, at different times."""

FASTEST_SHARE: Final = 0.1
"""Share of the variants that counts as the fastest."""

_GPU_IN_FLIGHT: Final = 4
"""Evaluations in flight for each GPU, as a loop on GPUs keeps."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSettings:
    """What is to be recorded, and how."""

    task: Task
    language: Language
    device: str
    most: int
    seed: int
    in_flight: int
    minutes: float


class RecordedRows:
    """The rows of a recording, on disk as soon as they are known.

    Args:
        out: The landscape file; the rows stand beside it until it is whole.
        header: What is recorded. Rows of another recording are refused.
    """

    def __init__(self, out: Path, header: Row) -> None:
        self._out = out
        self._header = header
        self._path = out.with_name(out.name + ".rows")
        self._rows: dict[str, Row] = {}
        out.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._recall(self._path.read_text().splitlines())
        elif out.exists():
            self._recall(_read(out).splitlines())
        # Rewritten in whole: the last line of a killed recording may be half a line.
        self._path.write_text(self._text())
        self._file = self._path.open("a")

    def __contains__(self, genome: Genome) -> bool:
        return _key(dict(genome.genes)) in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: Row) -> None:
        """Write one row, or in place of the one that is there one with the samples of both."""
        before = self._rows.get(_key(row["parameters"]))
        if before is not None:
            row = {**row, "times_ns": [*before["times_ns"], *row["times_ns"]]}
        self._rows[_key(row["parameters"])] = row
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def fastest(self, genomes: Sequence[Genome]) -> list[Genome]:
        """Return the `FASTEST_SHARE` of `genomes` that has the shortest medians."""
        times = {g: self._rows[_key(dict(g.genes))]["times_ns"] for g in genomes if g in self}
        timed = sorted((statistics.median(t), n) for n, t in enumerate(times.values()) if t)
        ranked = list(times)
        return [ranked[n] for _, n in timed[: math.ceil(FASTEST_SHARE * len(timed))]]

    def close(self) -> None:
        """Write the landscape file; its rows need not stand beside it any more."""
        self._file.close()
        data = self._text().encode()
        replace_file(self._out, gzip.compress(data, mtime=0) if self._is_gzip else data)
        self._path.unlink()

    @property
    def _is_gzip(self) -> bool:
        return self._out.suffix == ".gz"

    def _text(self) -> str:
        return "".join(json.dumps(line) + "\n" for line in (self._header, *self._rows.values()))

    def _recall(self, lines: Sequence[str]) -> None:
        header, *rows = _whole(lines) or [self._header]
        for name in ("task", "language", "device", "parameters"):
            if header.get(name) != self._header[name]:
                raise SystemExit(f"{self._out}: recorded with another {name}; choose another file")
        # Times of one day are not judged by the yardsticks of another.
        self._header = header
        self._rows = {_key(row["parameters"]): row for row in rows}


def _whole(lines: Sequence[str]) -> list[Row]:
    """Return the lines up to the first that is cut off."""
    found: list[Row] = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def _read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def _key(parameters: dict[str, str]) -> str:
    return json.dumps(parameters, sort_keys=True)


def variants(recipe: Recipe, *, seed: int, most: int) -> tuple[tuple[Genome, ...], int]:
    """Return (a grid of a recipe's genomes, how many there are in all).

    Where there are more than `most`, values are left out, the last of the longest gene first, so
    that what is recorded is a whole grid: the neighbours of a variant are there. The plainest
    comes first and the rest in random order, so that a recording that ends early is an even choice.
    """
    count = len(_distinct(recipe, [gene.values for gene in recipe.genes]))
    grid = [gene.values for gene in recipe.genes]
    while len(genomes := _distinct(recipe, grid)) > most:
        longest = max(range(len(grid)), key=lambda n: (len(grid[n]), n))
        grid[longest] = grid[longest][:-1]
    first = recipe.normalised(plain(recipe.family, recipe.genes))
    others = [genome for genome in genomes if genome != first]
    random.Random(seed).shuffle(others)
    return (first, *others), count


def _distinct(recipe: Recipe, grid: Sequence[tuple[str, ...]]) -> dict[Genome, None]:
    names = [gene.name for gene in recipe.genes]
    genomes = (
        Genome(family=recipe.family, genes=tuple(zip(names, values, strict=True)))
        for values in itertools.product(*grid)
    )
    return dict.fromkeys(recipe.normalised(genome) for genome in genomes)


def header_of(settings: RecordingSettings, recipe: Recipe, admission: Admission) -> Row:
    """Return the first line of the landscape."""
    (timed,) = [w for w in admission.workloads if not w.held_out]
    baselines_ns = [b.timing.median_ns for b in timed.baselines]
    device = admission.device
    return {
        "landscape": 1,
        "name": f"{settings.task.name}-{settings.language.value}",
        "task": settings.task.name,
        "language": settings.language.value,
        "device": device.name,
        "driver": device.driver_version,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "baseline_ns": min(baselines_ns) if baselines_ns else None,
        "parameters": [{"name": g.name, "values": list(g.values)} for g in recipe.genes],
    }


def _commit() -> str:
    """Return the commit of the checkout; "" where there is none."""
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip()


def row_of(genome: Genome, evaluation: Evaluation) -> Row:
    """Return the line of one variant."""
    timings = [w.timing for w in evaluation.workloads if w.timing is not None]
    is_timed = evaluation.passed and timings
    return {
        "parameters": dict(genome.genes),
        "measures": asdict(evaluation.measures) if evaluation.measures is not None else None,
        "outcome": evaluation.outcome.name,
        "launches": to_plain(evaluation.launches),
        "times_ns": [round(ns, 1) for ns in timings[0].samples_ns] if is_timed else [],
    }


class LandscapeRecorder:
    """Evaluates variants, several at a time, and writes their rows."""

    def __init__(
        self, evaluator: Evaluator, settings: RecordingSettings, recipe: Recipe, rows: RecordedRows
    ) -> None:
        self._evaluator = evaluator
        self._settings = settings
        self._recipe = recipe
        self._rows = rows
        self._failures_in_a_row = 0
        self._done = 0
        self._total = 0
        self._started_s = self._round_started_s = time.monotonic()

    async def run(self, genomes: Sequence[Genome]) -> None:
        """Record what is not there yet, until all is there or the time is up."""
        missing = [genome for genome in genomes if genome not in self._rows]
        print(f"{len(genomes) - len(missing)} rows are there, {len(missing)} to go", flush=True)
        await self._measure(missing)
        again = Counter(self._rows.fastest(genomes))
        # Who turns out slower than it seemed makes room for others, which are measured again then.
        while wanted := [
            genome
            for genome in self._rows.fastest(genomes)
            if again.setdefault(genome, 1) < MEASUREMENTS
        ]:
            if self._is_over():
                return
            print(f"the fastest again: {len(wanted)}", flush=True)
            again.update(wanted)
            await self._measure(wanted)

    async def _measure(self, genomes: Sequence[Genome]) -> None:
        self._done, self._total = 0, len(genomes)
        self._round_started_s = time.monotonic()
        queue = iter(genomes)
        async with asyncio.TaskGroup() as group:
            for _ in range(self._settings.in_flight):
                group.create_task(self._work(queue))

    async def _work(self, queue: Iterator[Genome]) -> None:
        for genome in queue:
            if self._is_over():
                return
            device_code, plan = self._recipe.write(genome)
            request = EvaluationRequest(
                task=self._settings.task,
                device=self._settings.device,
                source=KernelSource(
                    language=self._settings.language, device_code=device_code, plan=plan
                ),
                limits=LIMITS,
            )
            try:
                evaluation = await self._evaluator.evaluate(request)
            except KernelFoundryError as error:  # ours, not the variant's: no row
                self._failures_in_a_row += 1
                print(f"not recorded: {genome.comment()}: {error}", file=sys.stderr, flush=True)
                continue
            self._failures_in_a_row = 0
            self._rows.add(row_of(genome, evaluation))
            self._report(evaluation)

    def _is_over(self) -> bool:
        is_late = time.monotonic() - self._started_s > 60 * self._settings.minutes
        return is_late or self._failures_in_a_row >= _FAILURES_IN_A_ROW

    def _report(self, evaluation: Evaluation) -> None:
        self._done += 1
        elapsed_s = time.monotonic() - self._round_started_s
        left_min = elapsed_s / self._done * (self._total - self._done) / 60
        timing = next((w.timing for w in evaluation.workloads if w.timing), None)
        found = f"{timing.median_ns / 1e3:.1f} us" if timing else evaluation.outcome.name
        print(f"{self._done}/{self._total}, {left_min:.1f} min left: {found}", flush=True)


async def record(evaluator: Evaluator, settings: RecordingSettings, out: Path) -> int:
    """Record a landscape; return how many of its variants are still missing.

    Raises:
        RecipeUnsupported: no recipe covers the task.
        TaskInvalidError, BackendUnavailableError: as `Evaluator.admit`.
    """
    admission = await evaluator.admit(settings.task, settings.device)
    if not admission.admitted:
        raise SystemExit(f"not admitted: {'; '.join(admission.refusals)}")
    graph = read_graph(admission)
    recipe = choose_recipe(graph, language=settings.language, device=admission.device)
    genomes, count = variants(recipe, seed=settings.seed, most=settings.most)
    print(f"{recipe.family}: {count} variants, of which {len(genomes)} are wanted")
    rows = RecordedRows(out, header_of(settings, recipe, admission))
    try:
        await LandscapeRecorder(evaluator, settings, recipe, rows).run(genomes)
        return sum(genome not in rows for genome in genomes)
    finally:
        rows.close()
        print(f"{len(rows)} rows in {out}")


async def _in_flight(evaluator: Evaluator, device: str) -> int:
    """Return how many evaluations keep `device` busy without disturbing each other."""
    if not device.startswith("cuda"):
        return 1  # a build on the processor disturbs what is timed there
    devices = (await evaluator.capabilities()).devices
    return _GPU_IN_FLIGHT * max(1, sum(d.id.startswith(device) for d in devices))


async def _main(options: argparse.Namespace) -> int:
    task = read_task(options.task)
    if sum(not w.held_out for w in task.workloads) != 1:
        raise SystemExit(f"{task.name}: a landscape needs a task with one timed workload")
    evaluator = LocalEvaluator(EvaluatorSettings.from_environment(os.environ))
    try:
        settings = RecordingSettings(
            task=task,
            language=Language(options.language),
            device=options.device,
            most=options.most,
            seed=options.seed,
            in_flight=options.in_flight or await _in_flight(evaluator, options.device),
            minutes=options.minutes,
        )
        return await record(evaluator, settings, options.out)
    finally:
        await evaluator.close()


def main() -> None:
    """Read the command line and record; exit 1 when variants are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", type=Path, help="task file with one timed workload")
    parser.add_argument("--language", choices=[x.value for x in Language], default="sycl")
    parser.add_argument(
        "--device", default="", help='id, or a kind ("cuda") for all of its devices'
    )
    parser.add_argument(
        "--most", type=int, default=1000, help="most variants; a whole grid of fewer values"
    )
    parser.add_argument("--out", type=Path, required=True, help="landscape, .jsonl or .jsonl.gz")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--in-flight", type=int, default=0, help="evaluations at once")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so long")
    missing = asyncio.run(_main(parser.parse_args()))
    raise SystemExit(1 if missing else 0)


if __name__ == "__main__":
    main()
