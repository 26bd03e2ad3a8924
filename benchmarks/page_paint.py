"""How soon the live page shows a run of 2,000 evaluations in a headless Chromium.

Makes a run with the real archive and the fake evaluator, serves the page, and opens the run in one
browser again and again, each time with an empty cache: time from the navigation to the first
contentful paint, and until curve and table have all evaluations.

Run: python -m benchmarks.page_paint [--evaluations 2000] [--rounds 10] [--out FILE]
"""

import argparse
import asyncio
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from archive_svc.archive import LocalArchive
from benchmarks.result_file import out_option, write_host_result
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.evolution import Evolution
from kernel_foundry.sdk.services import Targets
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from tests.domain_values import run_spec
from tests.ui.browser import Browser, browser, missing
from tests.ui.conftest import served, with_archive

NAME = "page_paint"

_FIRST_PAINT_MS = (
    "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
)
_DRAWN_MS = """
const count = document.querySelector('.filter .soft')?.textContent ?? '';
const dots = document.querySelector('.curve .passed')?.getAttribute('d').split('M').length - 1;
return count.startsWith(`${arguments[0]} evaluations`) && dots > 0 ? performance.now() : null;
"""


async def _fill(archive: LocalArchive, evaluations: int) -> None:
    run = await archive.create_run(run_spec("large", seed=5))
    await Evolution(
        evaluator=FakeEvaluator(),
        archive=archive,
        generator=FakeGenerator(),
        run=run,
        budget=Budget(evaluations=evaluations - 1, stop_at=NEVER),
        limits=EvaluationLimits(),
        in_flight=2,
        judging=1,
        listener=lambda _event: None,
    ).run()


async def _count(store: str) -> int:
    archive = LocalArchive(store)
    count = (await archive.get_run("large")).evaluation_count
    await archive.close()
    return count


def _open(window: Browser, address: str, count: int) -> tuple[float, float]:
    """Return when the page was painted first and when it had all rows, in ms."""
    window.open(address)  # has the token
    window.devtools("Network.clearBrowserCache")
    window.open("about:blank")
    window.open(f"{address.partition('?')[0]}#/run/large")
    drawn_ms: float = window.wait(_DRAWN_MS, count)
    painted_ms: float = window.wait(_FIRST_PAINT_MS)
    return painted_ms, drawn_ms


def _summary(values: list[float]) -> dict[str, Any]:
    return {
        "median": round(statistics.median(values), 1),
        "most": round(max(values), 1),
        "samples": [round(value, 1) for value in values],
    }


def main() -> None:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=10)
    out_option(parser, NAME)
    arguments = parser.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["KERNEL_FOUNDRY_DATA_DIR"] = str(folder)
        store = f"sqlite:///{folder / 'runs.db'}"
        with_archive(folder, lambda archive: _fill(archive, arguments.evaluations))
        count = asyncio.run(_count(store))
        (folder / "profile").mkdir()
        with served(Targets(store=store)) as address, browser(folder / "profile") as window:
            window.resize(1280, 900)
            _open(window, address, count)  # reads the rows from the store once
            times = [_open(window, address, count) for _ in range(arguments.rounds)]
    measured = {
        "evaluations": count,
        "first_paint_ms": _summary([painted for painted, _ in times]),
        "all_drawn_ms": _summary([drawn for _, drawn in times]),
    }
    print(measured)
    write_host_result(arguments.out, NAME, measured)


if __name__ == "__main__":
    main()
