"""Runs to measure the archive with: a recorded one, added over and over with changes.

`runs/bias_gelu_layernorm.jsonl.gz` is a real run as `export_run` wrote it, so candidates and
verdicts have the sizes that they have in use.
"""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path

from archive_svc.run.run_file import import_run
from archive_svc.store.rows import EvaluationRow, NewEvaluation, evaluation_row
from archive_svc.store.store import Store
from archive_svc.store.whole_run import RunHead, WholeRuns
from kernel_foundry.domain.archive import RunSpec, RunState
from kernel_foundry.domain.attestation import Attestation, WorkloadSeeds
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.finding import Figure
from kernel_foundry.domain.measures import Measures
from kernel_foundry.rpc.readiness import wait_until_serving

RECORDED = Path(__file__).parent / "runs" / "bias_gelu_layernorm.jsonl.gz"

START_SECONDS = 120.0

_CHECKS = 12
"""Of each workload."""

ISLANDS = ("fusion", "memory", "parallelism", "compute")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A recorded run."""

    spec: RunSpec
    verdicts: tuple[tuple[Candidate, Evaluation], ...]


def read_recorded(folder: Path, path: Path = RECORDED) -> RecordedRun:
    """Read an exported run by way of a store in `folder`."""
    url = f"sqlite:///{folder / 'recorded.db'}"
    import_run(url, path)
    with closing(Store(url)) as store:
        (run,) = store.list_runs(1)
        archived = store.evaluations(run.id, 0, run.evaluation_count)
    return RecordedRun(spec=run.spec, verdicts=tuple((t.candidate, t.evaluation) for t in archived))


class Variants:
    """Endless made-up descendants of a recorded run's candidates.

    Args:
        recorded: The run.
        seed: Of every choice.
        label: Part of each source, so that two worlds share no candidate.
    """

    def __init__(self, recorded: RecordedRun, *, seed: int, label: str) -> None:
        self._recorded = recorded
        self._rng = random.Random(seed)
        self._label = label
        self._count = 0

    def next(self, parents: tuple[str, ...] = ()) -> tuple[Candidate, Evaluation]:
        """Return a new candidate of real size, with a verdict like a real one's."""
        candidate, evaluation = self._rng.choice(self._recorded.verdicts)
        self._count += 1
        code = f"// {self._label} {self._count}\n{candidate.source.device_code}"
        source = replace(candidate.source, device_code=code)
        operator = Operator.MUTATE if parents else Operator.SEED
        candidate = replace(candidate, source=source, parents=parents, operator=operator)
        measures = Measures(
            memory=self._rng.randrange(4),
            algorithm=self._rng.randrange(4),
            synchronization=self._rng.randrange(4),
        )
        fitness = evaluation.fitness * self._rng.uniform(0.5, 1.0)
        width = evaluation.optimistic_fitness - evaluation.fitness
        evaluation = replace(
            _with_evidence(evaluation),
            candidate=candidate.digest,
            measures=measures,
            fitness=fitness,
            optimistic_fitness=fitness + width,
        )
        return candidate, evaluation


def _with_evidence(evaluation: Evaluation) -> Evaluation:
    """Return a verdict with checks and a signature as large as a real one's.

    The run was recorded before verdicts had them.
    """
    if not evaluation.passed or evaluation.attestation is not None:
        return evaluation
    checks = tuple(
        Check(
            kind=kind,
            result=CheckResult.PASSED,
            workload=result.workload,
            figures=(Figure(name="largest_error", value=1.25e-7),),
        )
        for kind in list(CheckKind)[:_CHECKS]
        for result in evaluation.workloads
    )
    attestation = Attestation(
        seeds=tuple(
            WorkloadSeeds(workload=w.workload, seeds=(2**30, 2**30 + 1, 2**30 + 2))
            for w in evaluation.workloads
        ),
        seeds_given=False,
        signed_unix_s=1.75e9,
        digest=64 * "0",
        public_key=64 * "0",
        signature=128 * "0",
    )
    return replace(evaluation, checks=checks, attestation=attestation)


def fill(store_url: str, recorded: RecordedRun, *, name: str, count: int) -> None:
    """Insert a run of `count` evaluations, each the child of one of the thousand before it."""
    head = RunHead(
        spec=replace(recorded.spec, name=name, strategy="gradient"),
        state=RunState.RUNNING,
        created_unix_s=time.time(),
        evaluation_count=count,
        selected_count=count,
    )
    with closing(WholeRuns(store_url)) as runs:
        assert runs.insert(head, _rows(Variants(recorded, seed=0, label="fill"), count))


def _rows(variants: Variants, count: int) -> Iterator[EvaluationRow]:
    rng = random.Random(1)
    recent: list[str] = []
    for i in range(count):
        parents = (rng.choice(recent),) if recent else ()
        candidate, evaluation = variants.next(parents)
        recent = [*recent[-999:], candidate.digest]
        yield evaluation_row(
            NewEvaluation(
                request_id=f"fill {i}",
                candidate=candidate,
                evaluation=evaluation,
                island=rng.choice(ISLANDS),
                selection=i,
            )
        )


@asynccontextmanager
async def serving(store_url: str, target: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the archive as a process of its own; yield it once it is SERVING."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "archive_svc", "--listen", target, "--store", store_url
    )
    ended = asyncio.create_task(process.wait())
    ready = asyncio.create_task(wait_until_serving(target, timeout_s=START_SECONDS))
    try:
        await asyncio.wait({ended, ready}, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            raise ChildProcessError(f"the archive ended at its start with {ended.result()}")
        await ready
        yield process
    finally:
        ready.cancel()
        if not ended.done():
            process.terminate()
        await ended
