"""A thousand evaluators and two hundred loops in virtual time, over the real fleet and archive.

Evaluators are fakes that take a drawn time for each candidate, one after another; some are lost and
come back. Fleet, router, watches, losses and archive are the real ones; the event loop's clock
jumps to the next timer, and stands still while the archive works. Reports queue times, fairness
between loops, what a routing decision costs of the processor, and whether each verdict is recorded
once.

Run: python -m benchmarks.fleet_simulation [--evaluators 1000] [--loops 200] [--out FILE]
"""

import argparse
import asyncio
import contextlib
import random
import selectors
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from archive_svc.archive import LocalArchive
from benchmarks.result_file import out_option, write_host_result
from kernel_foundry.domain.archive import DEFAULT_STRATEGY, ArchivedEvaluation, RunSpec
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.device import Capabilities
from kernel_foundry.domain.device_class import own_id
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import ServiceUnavailableError
from kernel_foundry.sdk.fleet.fleet import Fleet
from kernel_foundry.sdk.fleet.membership import FixedSource
from kernel_foundry.sdk.fleet.router import Router
from kernel_foundry.testing.evaluator import FAKE_DEVICE, FakeEvaluator

NAME: Final = "fleet_simulation"
CLASSES: Final = 4
IN_FLIGHT: Final = 6
MEAN_S: Final = 2.0
HORIZON_S: Final = 30.0
LOST_SHARE: Final = 0.1


class VirtualSelector(selectors.DefaultSelector):
    """Waits for threads alone: otherwise the clock moves on in its place."""

    now_s = 0.0
    working = 0
    """Calls in threads, which take no virtual time."""

    def select(self, timeout: float | None = None) -> Any:
        """Advance the clock by what would have been waited."""
        if self.working:
            return super().select(None if timeout is None or timeout > 0.0 else 0.0)
        if timeout is None:
            raise RuntimeError("every task waits for another")
        self.now_s += max(timeout, 0.0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self._virtual = VirtualSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return virtual seconds."""
        return self._virtual.now_s

    def run_in_executor(  # type: ignore[override]  # of any arguments
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """Let the clock stand still until the thread has done it."""
        work = super().run_in_executor(executor, func, *args)
        self._virtual.working += 1
        work.add_done_callback(self._worked)
        return work

    def _worked(self, _work: "asyncio.Future[Any]") -> None:
        self._virtual.working -= 1


class SimulatedEvaluator(FakeEvaluator):
    """Judges one candidate after another; may be lost.

    Args:
        number: Of the evaluator; gives its class.
        draw: Random times.
    """

    def __init__(self, number: int, draw: random.Random) -> None:
        model = f"model {number % CLASSES}"
        super().__init__(device=replace(FAKE_DEVICE, id="null:0", name=model))
        self._draw = draw
        self._turn = asyncio.Lock()
        self.waits_s: list[float] = []
        self.is_lost = False

    async def capabilities(self) -> Capabilities:
        """Return the one device, unless it is lost."""
        self._check()
        return await super().capabilities()

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge in turn, in a drawn time."""
        clock = asyncio.get_running_loop().time
        asked_s = clock()
        async with self._turn:
            self._check()
            self.waits_s.append(clock() - asked_s)
            await asyncio.sleep(self._draw.expovariate(1 / MEAN_S))
        self._check()
        return await super().evaluate(request)

    def _check(self) -> None:
        if self.is_lost:
            raise ServiceUnavailableError("lost")


def _spec(loop: int) -> RunSpec:
    reference = f"class Model: ...  # {loop}"  # a task's name is no part of its digest
    return RunSpec(
        name=f"run-{loop}",
        task=Task(name="t", reference=reference, workloads=(Workload(name="default"),)),
        language=Language.SYCL,
        device="null",
        models=(),
        strategy=DEFAULT_STRATEGY,
        seed=loop,
    )


@contextlib.contextmanager
def _timed_choices() -> Iterator[list[int]]:
    """Give the nanoseconds of the processor that each choice of a device took in the block."""
    costs_ns: list[int] = []
    choose = Router.choose

    def timed(self: Router, *arguments: Any, **options: Any) -> Any:
        began = time.thread_time_ns()
        try:
            return choose(self, *arguments, **options)
        finally:
            costs_ns.append(time.thread_time_ns() - began)

    Router.choose = timed  # type: ignore[method-assign]
    try:
        yield costs_ns
    finally:
        Router.choose = choose  # type: ignore[method-assign]


async def simulate(evaluators: int, loops: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return what a simulation came to; its archive is in `folder`."""
    draw = random.Random(seed)
    hosts = {f"h{n}:1": SimulatedEvaluator(n, draw) for n in range(evaluators)}
    fleet = Fleet(FixedSource(tuple(hosts)), lambda address: hosts[address])
    archive = LocalArchive(f"sqlite:///{folder / 'runs.db'}")
    specs = [_spec(loop) for loop in range(loops)]
    for spec in specs:
        await archive.create_run(spec)
    clock = asyncio.get_running_loop().time
    verdicts: list[list[Evaluation]] = [[] for _ in range(loops)]
    late: list[Evaluation] = []
    """Verdicts that were under way at the end: recorded as well, and no part of other figures."""

    async def lane(loop: int, number: int) -> None:
        spec, count = specs[loop], 0
        while clock() < end_s:
            selection = (await archive.select(spec.name)).sequence
            plan = f"{loop}.{number}.{count}"
            source = KernelSource(language=Language.SYCL, device_code="", plan=plan)
            asked = EvaluationRequest(task=spec.task, device="null", source=source, request_id=plan)
            evaluation = await fleet.evaluate(asked)
            (verdicts[loop] if clock() < end_s else late).append(evaluation)
            await archive.add(
                spec.name, _candidate(source), evaluation, request_id=plan, selection=selection
            )
            count += 1

    async def losses() -> None:
        while True:
            host = draw.choice(list(hosts.values()))
            host.is_lost = True
            asyncio.get_running_loop().call_later(5.0, setattr, host, "is_lost", False)
            await asyncio.sleep(HORIZON_S / (LOST_SHARE * evaluators))

    await fleet.capabilities()
    end_s = clock() + HORIZON_S
    harm = asyncio.create_task(losses())
    with _timed_choices() as costs_ns:
        lanes = [lane(loop, number) for loop in range(loops) for number in range(IN_FLIGHT)]
        ended = await asyncio.gather(*lanes, return_exceptions=True)
    harm.cancel()
    await asyncio.gather(harm, return_exceptions=True)
    await fleet.close()
    recorded = [await _recorded(archive, spec.name) for spec in specs]
    await archive.close()
    counts = [len(found) for found in verdicts]
    judged = [v for found in verdicts for v in found]
    model = {address: number % CLASSES for number, address in enumerate(hosts)}
    mixed = sum(
        len({model[v.device.partition("@")[2]] for v in found if "@" in v.device}) > 1
        for found in verdicts
    )
    waits_s = sorted(w for host in hosts.values() for w in host.waits_s)
    costs_us = sorted(cost / 1e3 for cost in costs_ns)
    return {
        "evaluators": evaluators,
        "loops": loops,
        "in_flight_of_a_loop": IN_FLIGHT,
        "virtual_seconds": HORIZON_S,
        "mean_seconds_of_a_verdict": MEAN_S,
        "lost_share": LOST_SHARE,
        "verdicts": len(judged),
        "verdicts_under_way_at_the_end": len(late),
        "not_recorded": len(judged) + len(late) - sum(len(digests) for digests in recorded),
        "recorded_twice": sum(digests.total() - len(digests) for digests in recorded),
        "lanes_that_failed": sum(isinstance(end, BaseException) for end in ended),
        "loops_on_two_classes": mixed,
        "quarantined": sum(own_id(v.device) == v.device for v in judged),
        "wait_s": {"median": statistics.median(waits_s), "p95": waits_s[len(waits_s) * 95 // 100]},
        "device_use": len(judged) * MEAN_S / (evaluators * HORIZON_S),
        "fairness_jain": sum(counts) ** 2 / (loops * sum(c * c for c in counts)),
        "verdicts_of_a_loop": {"least": min(counts), "most": max(counts)},
        "decision_processor_us": {
            "count": len(costs_us),
            "median": statistics.median(costs_us),
            "p99": costs_us[len(costs_us) * 99 // 100],
        },
    }


def _candidate(source: KernelSource) -> Candidate:
    return Candidate(
        source=source, parents=(), operator=Operator.SEED, generation=0, prompt_digest="", model=""
    )


async def _recorded(archive: LocalArchive, run: str) -> Counter[str]:
    """Return how often each candidate of a run is recorded, by digest."""
    found: list[ArchivedEvaluation] = []
    while page := await archive.evaluations(run, after=len(found), limit=1000):
        found += page
    return Counter(entry.candidate.digest for entry in found)


def main() -> None:
    """Simulate and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluators", type=int, default=1000)
    parser.add_argument("--loops", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    out_option(parser, NAME)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
    ):
        asked = (arguments.evaluators, arguments.loops, arguments.seed)
        found = runner.run(simulate(*asked, Path(folder)))
    write_host_result(arguments.out, NAME, found)


if __name__ == "__main__":
    main()
