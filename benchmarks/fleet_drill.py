"""Loops on a fleet of real evaluators that are killed at random: is anything lost, or taken twice?

Six evaluators, of the null device and of the CPU by SYCL in turn, are served by `kfoundry serve
evaluator` as processes on loopback with TLS and tokens. Several loops run on them, each with a
fleet of its own, a fake model whose candidates are real kernels, and sweeps. Meanwhile evaluators
are killed and started again, drained, and removed from the fleet file and added to it. Afterwards
each run is compared with what was proposed, and with the classes of the devices that judged.

Then the throughput of six evaluators against one. A host has too few cores for that, so these are
fakes that take a fixed time for a verdict and give one at a time.

Run: python -m benchmarks.fleet_drill [--seconds 60] [--loops 4] [--out FILE]
"""

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from archive_svc.archive import LocalArchive
from benchmarks.fleet_hosts import (
    FAKE_S,
    Hosts,
    fake_evaluator,
    open_access,
    real_evaluator,
)
from benchmarks.free_port import free_port
from benchmarks.result_file import out_option, write_host_result
from kernel_foundry.domain.archive import ArchivedEvaluation, RunState
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import (
    EvaluationLimits,
    EvaluationRequest,
    Proposal,
    ProposalRequest,
)
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.errors import ServiceUnavailableError
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.sdk.fleet.fleet import Fleet
from kernel_foundry.sdk.fleet.membership import FileSource
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.optimization import optimize, resume
from kernel_foundry.sdk.services import Services
from kernel_foundry.testing.generator import FakeGenerator

NAME: Final = "fleet_drill"
EVALUATORS: Final = 6
KINDS: Final = ("null", "sycl")
"""Device kinds, which are two classes; evaluators have them in turn."""
HARM_EVERY_S: Final = 20.0
THROUGHPUT_S: Final = 20.0
CALLS_AT_ONCE: Final = 24
LIMITS: Final = EvaluationLimits(timing_seconds=0.05)
REFERENCE: Final = """\
import torch
from torch import nn


class Model(nn.Module):  # of loop {loop}
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(64, 33)]


def get_init_inputs():
    return []
"""
# The null device knows this kernel by its name.
KERNEL: Final = """\
// proposal {seed}.{sequence}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void null_relu(const float* x, float* out, int count) {{
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = x[i] > 0.0f ? x[i] : 0.0f;
}}
"""
PLAN: Final = """\
TUNE = {"WG": [64, 16]}

def launch(x, out):
    null_relu[cdiv(x.numel(), WG), WG](x, out, x.numel())
"""
_ONCE: Final = CallOptions(retry=RetryPolicy(attempts=1))


class KernelGenerator(FakeGenerator):
    """Proposes kernels that are right, each with a text of its own."""

    async def propose(self, request: ProposalRequest) -> Proposal:
        """Propose the candidate of the request's seed and place in its run."""
        proposal = await super().propose(request)
        assert proposal.candidate is not None, "a fake has one for every request"
        code = KERNEL.format(seed=request.seed, sequence=request.selection.sequence)
        source = KernelSource(language=Language.SYCL, device_code=code, plan=PLAN)
        return replace(proposal, candidate=replace(proposal.candidate, source=source))


def fleet_of(hosts: Hosts) -> Fleet:
    """Return a fleet that follows the hosts' file."""
    return Fleet(FileSource(hosts.file), lambda address: RemoteEvaluator(address, _ONCE))


class Drill:
    """Runs on real evaluators, to which harm is done.

    Args:
        folder: For everything.
        seconds: Of each run.
        seed: Of the harm.
    """

    def __init__(self, folder: Path, seconds: float, seed: int) -> None:
        self._seconds = seconds
        self._draw = random.Random(seed)
        self._kinds = {free_port(): KINDS[n % len(KINDS)] for n in range(EVALUATORS)}
        self._hosts = Hosts(
            folder, {p: real_evaluator(p, kind, folder) for p, kind in self._kinds.items()}
        )
        self._archive = LocalArchive(f"sqlite:///{folder}/runs.db")
        self._harm = Counter[str]()

    async def run(self, loops: int) -> dict[str, Any]:
        """Return what became of so many runs."""
        self._hosts.list()
        ports = list(self._kinds)
        # What the first of a kind measures is in the others' cache.
        await asyncio.gather(*map(self._hosts.start, ports[: len(KINDS)]))
        await asyncio.gather(*map(self._hosts.start, ports[len(KINDS) :]))
        began_s = time.monotonic()
        harm = asyncio.create_task(self._do_harm())
        try:
            runs = await asyncio.gather(*map(self._run, range(loops)))
        finally:
            harm.cancel()
            await asyncio.gather(harm, return_exceptions=True)
            await self._hosts.end()
        total = Counter[str]()
        for run in runs:
            total.update(run)
        await self._archive.close()
        return {
            "evaluators": f"{EVALUATORS}, real, of devices {' and '.join(KINDS)} in turn",
            "loops": loops,
            "seconds": time.monotonic() - began_s,
            **self._harm,
            **total,
        }

    async def _do_harm(self) -> None:
        """Kill, drain, remove and add at random, for ever; one of each class is left alone."""
        up, removed = set(self._kinds), None

        async def start_again(port: int) -> None:
            await self._hosts.kill(port)
            await self._hosts.start(port)
            up.add(port)

        async with asyncio.TaskGroup() as starts:
            while True:
                await asyncio.sleep(self._draw.expovariate(1 / HARM_EVERY_S))
                spared = {
                    self._draw.choice(
                        [p for p in self._kinds if p in up and self._kinds[p] == kind]
                    )
                    for kind in KINDS
                }
                others = [port for port in self._kinds if port not in spared]
                before, removed = removed, self._draw.choice([None, *others])
                drained = self._draw.choice([None, *others])
                self._hosts.list(removed=removed, drained=drained)
                self._harm["drained"] += drained is not None
                self._harm["removed_from_the_file"] += removed not in (None, before)
                self._harm["added_to_the_file"] += before not in (None, removed)
                if alive := [port for port in others if port in up]:
                    port = self._draw.choice(alive)
                    up.remove(port)
                    self._harm["kills"] += 1
                    starts.create_task(start_again(port))

    async def _run(self, number: int) -> dict[str, int]:
        generator, kind = KernelGenerator(), KINDS[number % len(KINDS)]
        fleet = fleet_of(self._hosts)
        reference = REFERENCE.format(loop=number)
        services = Services(evaluator=fleet, archive=self._archive, generator=generator)
        run, budget = f"drill-{number}", Budget(minutes=self._seconds / 60, stop_at=NEVER)
        began = optimize(
            services,
            Task(name="drill", reference=reference, workloads=(Workload(name="default"),)),
            language=Language.SYCL,
            device=kind,
            models=(),
            budget=budget,
            limits=LIMITS,
            run=run,
            seed=number,
            in_flight=4,
            without=(),
            listener=_ignore,
        )
        ended, interruptions = None, 0
        while ended is None:
            again = partial(resume, services, run, budget=budget, limits=LIMITS, in_flight=4)
            try:
                ended = await (again(listener=_ignore) if interruptions else began)
            except ServiceUnavailableError:
                interruptions += 1  # no evaluator of its class answered for a minute
        await fleet.close()
        found: list[ArchivedEvaluation] = []
        while page := await self._archive.evaluations(
            ended.run.spec.name, after=len(found), limit=100
        ):
            found += page
        is_finished = ended.run.state is RunState.FINISHED
        counted = {"finished": is_finished, "interruptions": interruptions}
        return counted | self._compared(found, generator, kind)

    def _compared(
        self, found: list[ArchivedEvaluation], generator: FakeGenerator, kind: str
    ) -> dict[str, int]:
        """Compare a run's record with what was proposed and reported, and its devices."""
        # A candidate's other verdicts are those of its sweep and of the end.
        proposed = [e for e in found if e.selection is not None]
        archived = Counter(e.candidate.digest for e in proposed)
        swept = Counter(e.candidate.digest for e in found if e.evaluation.swept_count)
        reported = {outcome.candidate.digest for outcome in generator.reported.values()}
        hosts = {
            e.evaluation.device.rpartition(":")[2] for e in found if "@" in e.evaluation.device
        }
        lost = [f for e in found for f in e.evaluation.findings if f.kind is FindingKind.HOST_LOST]
        return {
            "verdicts": len(proposed),
            "passed": sum(e.evaluation.passed for e in proposed),
            "verdicts_of_sweeps": len(swept),
            "reported_and_not_recorded": len(reported - archived.keys()),
            "recorded_and_not_reported": len(archived.keys() - reported),
            "recorded_twice": sum(n > 1 for n in (*archived.values(), *swept.values())),
            "runs_on_another_class": any(self._kinds[int(port)] != kind for port in hosts),
            "quarantined": len(lost),
        }


def _ignore(_event: object) -> None:
    """Nobody watches a run of the drill."""


async def throughput(folder: Path, evaluators: int, seconds: float) -> float:
    """Return verdicts a second of so many fakes, which always have calls waiting."""
    ports = [free_port() for _ in range(evaluators)]
    hosts = Hosts(folder, {port: fake_evaluator(port, folder) for port in ports})
    hosts.list()
    await asyncio.gather(*map(hosts.start, ports))
    fleet = fleet_of(hosts)
    task = Task(name="t", reference="class Model: ...", workloads=(Workload(name="default"),))
    await fleet.admit(task)
    count, end_s = 0, time.monotonic() + seconds

    async def lane(number: int) -> None:
        nonlocal count
        place = 0
        while time.monotonic() < end_s:
            plan = f"{number}.{place}"
            source = KernelSource(language=Language.SYCL, device_code="", plan=plan)
            asked = EvaluationRequest(task=task, device="", source=source, request_id=plan)
            await fleet.evaluate(asked)
            place += 1
            count += time.monotonic() < end_s

    await asyncio.gather(*map(lane, range(CALLS_AT_ONCE)))
    await fleet.close()
    await hosts.end()
    return count / seconds


async def measure(folder: Path, seconds: float, loops: int, seed: int) -> dict[str, Any]:
    """Drill, then measure throughput."""
    open_access(folder)
    found = await Drill(folder, seconds, seed).run(loops)
    rates = {n: await throughput(folder, n, THROUGHPUT_S) for n in (1, EVALUATORS)}
    found["throughput"] = {
        "evaluators": f"fakes that take {FAKE_S} s for a verdict and give one at a time",
        "calls_at_once": CALLS_AT_ONCE,
        "verdicts_a_second": {str(n): rate for n, rate in rates.items()},
        "ratio": rates[EVALUATORS] / rates[1],
    }
    return found


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--loops", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    out_option(parser, NAME)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # Few cores share all of it; the figures of interest are not times of kernels.
        os.environ |= {
            "KERNEL_FOUNDRY_DATA_DIR": folder,
            "KERNEL_FOUNDRY_CACHE_DIR": f"{folder}/cache",
            "KERNEL_FOUNDRY_BASELINES": "",
            "KERNEL_FOUNDRY_BASELINE_SECONDS": "0.02",
            "KERNEL_FOUNDRY_WARM_SECONDS": "0.02",
            "KERNEL_FOUNDRY_HOST_CACHE_BYTES": str(8 << 20),
        }
        asked = (arguments.seconds, arguments.loops, arguments.seed)
        found = asyncio.run(measure(Path(folder), *asked))
    write_host_result(arguments.out, NAME, found)


if __name__ == "__main__":
    main()
