"""Sixteen loops select and add at once: what is acknowledged is stored, once, without gaps.

Four processes serve one store; four others run four loops each, that select, add, and now and
then send an evaluation again as after a lost answer. At the end the store is compared with what the
loops got as answers. SQLite, then a PostgreSQL server of its own (Debian's, with fsync on).

Run: python -m benchmarks.archive_loops [--seconds 60] [--out FILE]
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from archive_svc.store.store import Store
from archive_svc.store.whole_run import WholeRuns
from benchmarks.archive_runs import Variants, read_recorded, serving
from benchmarks.result_file import ROOT, out_option, write_host_result
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.rpc.archive import RemoteArchive
from tests.archive.postgres import PostgresServer, absence

NAME = "archive_loops"

RUN: Final = "shared"
SERVICES: Final = 4
LOOPS_PER_CLIENT: Final = 4
REPEAT_SHARE: Final = 0.1
"""Share of evaluations that are sent a second time."""


async def loop(archive: RemoteArchive, variants: Variants, label: str, end_s: float) -> Any:
    """Select and add until `end_s`; return the acknowledged requests, selections and errors."""
    rng = random.Random(label)
    archived: list[str] = []
    selections: list[int] = []
    errors: list[str] = []
    while time.time() < end_s:
        request_id = f"{label} {len(archived)} {len(errors)}"
        try:
            selection = await archive.select(RUN)
            selections.append(selection.sequence)
            parents = (selection.parent.candidate.digest,) if selection.parent else ()
            candidate, evaluation = variants.next(parents)
            for _ in range(1 + (rng.random() < REPEAT_SHARE)):
                await archive.add(
                    RUN,
                    candidate,
                    evaluation,
                    request_id=request_id,
                    selection=selection.sequence,
                )
            archived.append(request_id)
        except KernelFoundryError as error:  # counted; the bar is none
            errors.append(f"{type(error).__name__}: {error}")
    return {"archived": archived, "selections": selections, "errors": errors}


async def client(number: int, target: str, end_s: float) -> None:
    """Run the loops of one process; print what they know as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        recorded = read_recorded(Path(folder))
    archive = RemoteArchive(target)
    labels = [f"loop {number}.{i}" for i in range(LOOPS_PER_CLIENT)]
    known = await asyncio.gather(
        *(
            loop(archive, Variants(recorded, seed=number, label=label), label, end_s)
            for label in labels
        )
    )
    await archive.close()
    print(json.dumps(known))


async def measure(store_url: str, folder: Path, seconds: float) -> dict[str, Any]:
    """Run all loops on one store and compare it with what they got as answers."""
    recorded = read_recorded(folder)
    targets = [f"unix:{folder / f'{i}.sock'}" for i in range(SERVICES)]
    async with AsyncExitStack() as services:
        for target in targets:
            await services.enter_async_context(serving(store_url, target))
        archive = RemoteArchive(targets[0])
        await archive.create_run(replace(recorded.spec, name=RUN, strategy="gradient"))
        await archive.close()
        started_s = time.time()
        known = await asyncio.gather(
            *(_client(i, target, started_s + seconds) for i, target in enumerate(targets))
        )
        seconds = time.time() - started_s
    return _compare(store_url, [k for of_client in known for k in of_client], seconds)


async def _client(number: int, target: str, end_s: float) -> list[dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.archive_loops",
        "--client", str(number), target, str(end_s),
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    known: list[dict[str, Any]] = json.loads(output)
    return known


def _compare(store_url: str, known: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    acknowledged = Counter(request for k in known for request in k["archived"])
    selections = Counter(s for k in known for s in k["selections"])
    with closing(Store(store_url)) as store:
        run = store.find_run(RUN)
        assert run is not None
        sequences = {result.sequence for result in store.results(run.id, 0)}
    with closing(WholeRuns(store_url)) as runs:
        stored = Counter(row.request_id for row in runs.evaluations(run.id))
    return {
        "loops": len(known),
        "seconds": seconds,
        "acknowledged": len(acknowledged),
        "stored": len(stored),
        "lost": len(acknowledged - stored),
        "not_acknowledged": len(stored - acknowledged),
        "duplicates": sum(stored.values()) - len(stored),
        "gaps": len(set(range(1, run.evaluation_count + 1)) - sequences),
        "selections": len(selections),
        "selections_given_twice": sum(selections.values()) - len(selections),
        "errors": dict(Counter(error for k in known for error in k["errors"])),
        "evaluations_a_second": len(acknowledged) / seconds,
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="on each kind of store")
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    out_option(parser, NAME)
    options = parser.parse_args()
    if options.client:
        number, target, end_s = options.client
        asyncio.run(client(int(number), target, float(end_s)))
        return
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = f"sqlite:///{folder / 'runs.db'}"
        measured["sqlite"] = asyncio.run(measure(url, folder, options.seconds))
    if absence():
        print(absence(), file=sys.stderr)
    else:
        with PostgresServer(fsync=True) as server, tempfile.TemporaryDirectory() as name:
            url = server.new_store()
            measured["postgresql"] = asyncio.run(measure(url, Path(name), options.seconds))
    write_host_result(options.out, NAME, measured)
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
