"""A suite on real services that are killed: is anything lost, or judged twice?

Evaluator, archive and generator (recipes) are processes on UNIX sockets; the loop is a fourth. Each
of them, and then all at once, gets SIGKILL once, in random order at random moments, and is started
again. Afterwards what the loop was told is compared with what is stored. Tasks are small on the CPU
and full-size on GPUs, of which all are used. After --minutes no run begins. With --keep the
suite's data stay there: `XDG_DATA_HOME=FOLDER/data kfoundry suite show` tells its numbers.

Run: python -m benchmarks.suite_kill_drill [--device sycl] [--tasks 20] [--evaluations 3] [--seed 1]
     [--kill-within 60] [--minutes 60] [--keep FOLDER] [--out FILE]
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.result_file import parse_for_device, write_result
from benchmarks.suite import TASKS
from kernel_foundry.domain.archive import ArchivedEvaluation, RunBudget
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.readiness import wait_until_serving
from kernel_foundry.sdk.loop.progress import VerdictEvent
from kernel_foundry.sdk.services import Directory, Targets
from kernel_foundry.sdk.suite.entry import EntryState
from kernel_foundry.sdk.suite.plan import SuitePlan, WholeBudget
from kernel_foundry.sdk.suite.progress import SuiteEvent, SuiteRunEvent
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.suite.suite_run import run_suite

NAME: Final = "suite_kill_drill"
SUITE: Final = "drill"
SERVICES: Final = ("evaluator", "archive", "generator")
LOOP: Final = "loop"
ALL: Final = "all"
_START_SECONDS: Final = 120.0
_ON_THE_CPU: Final = {
    "KERNEL_FOUNDRY_BASELINES": "",
    "KERNEL_FOUNDRY_BASELINE_SECONDS": "0.2",
    "KERNEL_FOUNDRY_HOST_CACHE_BYTES": str(32 << 20),
}
"""Of an evaluator; GPUs have its defaults, so that a suite's numbers are as for a user."""


def plan_of(
    kind: str, tasks: int, evaluations: int, minutes: float | None, *, seed: int
) -> SuitePlan:
    """Return a suite for all devices of `kind`, with the offline generator."""
    chosen = [task for task in TASKS if not task.is_degenerate][:tasks]
    # Whatever the time ends, it has seen every sort of operator.
    random.Random(seed).shuffle(chosen)
    small = kind == "sycl"
    return SuitePlan(
        name=SUITE,
        tasks=tuple(replace(task.task(small=small), admit_degenerate=True) for task in chosen),
        language=Language(kind),
        devices=(kind,),
        models=("recipes",),
        stop_at=NEVER,
        each=RunBudget(evaluations=evaluations),
        whole=WholeBudget(hours=None if minutes is None else minutes / 60),
        # Recipes read none.
        without=("profiles",),
        limits=EvaluationLimits(timing_seconds=0.1),
    )


async def work(folder: Path) -> None:
    """Work on the suite to its end, as the loop's process; each verdict is a line of output."""

    def say(event: SuiteEvent) -> None:
        if isinstance(event, SuiteRunEvent) and isinstance(event.event, VerdictEvent):
            told = event.event
            is_last_word = int(told.is_promotion)
            print(event.entry.run, told.candidate.digest, is_last_word, flush=True)

    evaluator, archive, generator = (_address(folder, service) for service in SERVICES)
    directory = Directory(Targets(evaluator=evaluator, archive=archive, generator=generator))
    try:
        with closing(_suites(folder)) as store:
            await run_suite(await directory.services(), store, store.find(SUITE), say)
    finally:
        await directory.close()


class Processes:
    """The four processes of a suite.

    Args:
        folder: For their sockets, stores and logs.
        kind: Of the devices.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._kind = kind
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self.starts: Counter[str] = Counter()

    async def start(self, *roles: str) -> None:
        """Start processes; returns when their services answer."""
        for role in roles:
            self._running[role] = await self._started(role)
            self.starts[role] += 1
        for role in roles:
            if role != LOOP:
                target = _address(self._folder, role)
                await wait_until_serving(target, timeout_s=_START_SECONDS)

    async def kill(self, *roles: str) -> None:
        """Kill processes at once, with what they have started."""
        for role in roles:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._running[role].pid, signal.SIGKILL)
        for role in roles:
            await self._running.pop(role).wait()

    async def loop_ended(self, seconds: float) -> int | None:
        """Return the loop's exit code; None: it goes on after so many seconds."""
        try:
            return await asyncio.wait_for(self._running[LOOP].wait(), seconds)
        except TimeoutError:
            return None

    async def _started(self, role: str) -> asyncio.subprocess.Process:
        module = ["benchmarks.suite_kill_drill", "--work", str(self._folder)]
        if role != LOOP:
            module = [f"{role}_svc", "--listen", _address(self._folder, role)]
        environment = (
            os.environ
            | {
                "XDG_DATA_HOME": str(self._folder / "data"),
                "XDG_CACHE_HOME": str(self._folder / "cache"),
                "KERNEL_FOUNDRY_DEVICE_KINDS": self._kind,
            }
            | (_ON_THE_CPU if self._kind == "sycl" else {})
        )
        with (self._folder / f"{role}.out").open("ab") as out:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-m", *module, stdout=out, stderr=out,
                env=environment, start_new_session=True,
            )  # fmt: skip


async def drill(
    folder: Path, plan: SuitePlan, *, seed: int, kill_within_s: float
) -> tuple[tuple[DeviceSpec, ...], dict[str, Any]]:
    """Run the suite of `plan` in `folder`, and kill each part once.

    Returns:
        The devices, and what came of it.
    """
    chance = random.Random(seed)
    processes = Processes(folder, plan.language.value)
    with closing(_suites(folder)) as store:
        store.create(plan)
    await processes.start(*SERVICES)
    devices = await devices_of(folder)
    started_s = time.monotonic()
    await processes.start(LOOP)
    kills: list[dict[str, Any]] = []
    roles = [LOOP, *SERVICES, ALL]
    chance.shuffle(roles)
    for role in roles:
        if await processes.loop_ended(chance.uniform(5.0, kill_within_s)) is not None:
            break
        killed = (LOOP, *SERVICES) if role == ALL else (role,)
        with closing(_suites(folder)) as store:
            ended = sum(entry.has_ended for entry in store.find(SUITE).entries)
        kills.append({"killed": role, "at_s": time.monotonic() - started_s, "runs_ended": ended})
        await processes.kill(*killed)
        await processes.start(*(r for r in killed if r != LOOP))
        await processes.start(*(r for r in killed if r == LOOP))
    code = await processes.loop_ended(3600.0)
    seconds = time.monotonic() - started_s
    try:
        return devices, {
            "devices": len(devices),
            "tasks": len(plan.tasks),
            "evaluations_of_each": plan.each.evaluations,
            "seconds": seconds,
            "loop_exit_code": code,
            "kills": kills,
            "starts": dict(processes.starts),
            **await _compared(folder, plan),
        }
    finally:
        await processes.kill(*SERVICES)


async def _compared(folder: Path, plan: SuitePlan) -> dict[str, Any]:
    """Compare what is stored with what the loop was told."""
    with closing(_suites(folder)) as store:
        suite = store.find(SUITE)
    lines = (folder / "loop.out").read_text(encoding="utf-8").splitlines()
    told = [tuple(words[:2]) for line in lines if (words := line.split())[2:] == ["0"]]
    archive = RemoteArchive(_address(folder, "archive"))
    stored: list[tuple[str, str]] = []
    counts: list[int] = []
    try:
        for entry in (e for e in suite.entries if e.state is not EntryState.WAITING):
            found = await _evaluations(archive, entry.run)
            stored += [(entry.run, one.candidate.digest) for one in found]
            counts.append(len(found))
    finally:
        await archive.close()
    return {
        "states": dict(Counter(entry.state.value for entry in suite.entries)),
        "reasons": sorted({e.progress.reason for e in suite.entries if e.progress.reason}),
        "verdicts_told": len(told),
        "verdicts_stored": len(stored),
        "told_and_not_stored": len(set(told) - set(stored)),
        "stored_twice": sum(count - 1 for count in Counter(stored).values()),
        "told_twice": sum(count - 1 for count in Counter(told).values()),
        "runs_above_their_budget": sum(c > (plan.each.evaluations or 0) for c in counts),
    }


async def _evaluations(archive: RemoteArchive, run: str) -> list[ArchivedEvaluation]:
    """All of a run but elites that were measured again at its end."""
    found: list[ArchivedEvaluation] = []
    after = 0
    while page := await archive.evaluations(run, after=after):
        found += [one for one in page if not one.evaluation.is_final]
        after = page[-1].sequence
    return found


async def devices_of(folder: Path) -> tuple[DeviceSpec, ...]:
    """Return the evaluator's devices."""
    evaluator = RemoteEvaluator(_address(folder, "evaluator"))
    try:
        return (await evaluator.capabilities()).devices
    finally:
        await evaluator.close()


def _address(folder: Path, service: str) -> str:
    return f"unix:{folder}/{service}"


def _suites(folder: Path) -> SuiteStore:
    """Open the suites where `kfoundry suite` looks for them."""
    return SuiteStore(folder / "data" / "kernel-foundry" / "suites.db")


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kill-within", type=float, default=60.0, help="seconds between two kills")
    parser.add_argument("--minutes", type=float, help="begin no run after (none)")
    parser.add_argument("--keep", type=Path, help="folder for the suite's data, which stay")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parse_for_device(parser, NAME)
    if options.work is not None:
        asyncio.run(work(options.work))
        return
    kind = options.device.partition(":")[0]
    plan = plan_of(kind, options.tasks, options.evaluations, options.minutes, seed=options.seed)
    with tempfile.TemporaryDirectory(prefix="kf-") as temporary:
        folder = options.keep or Path(temporary)
        (folder / "data" / "kernel-foundry").mkdir(parents=True, exist_ok=True)
        devices, measured = asyncio.run(
            drill(folder, plan, seed=options.seed, kill_within_s=options.kill_within)
        )
    print(json.dumps(measured, indent=1), flush=True)
    write_result(options.out, NAME, devices[0], measured)


if __name__ == "__main__":
    main()
