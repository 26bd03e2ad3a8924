"""Records of somebody whose models, devices and compilers are all hostile."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from archive_svc.archive import LocalArchive
from generator_svc.exchange_log import ExchangeLog
from generator_svc.ledger import RequestCounter, RunLedger
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.archive import RunState
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.exchange import ChatMessage, Exchange, FinishReason
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.model_limit import ModelLimit
from kernel_foundry.domain.profile import HotLine, KernelProfile, Profile, Share
from kernel_foundry.domain.request import TokenUsage
from kernel_foundry.domain.steering import Steering, SteeringAction
from tests.archive.conftest import make_evaluation
from tests.domain_values import run_spec

# A title, a clipboard, a cleared screen, a colour of its own, a link, C1, DEL, directions, no
# width, a tag, markup of a terminal, a line that looks like ours, and markup of a browser.
HOSTILE = (
    "a\x1b]0;owned\x07\x1b]52;c;eA==\x1b\\\x1b[2J\x1b[9;53mb\x1b]8;;http://evil\x1b\\c\x9b31m\x7f"
    "\u202egpj.\u2066\u200b\U000e0041\r\b\x00[bold red]x[/] [link=http://evil]y[/link] :smile: "
    "<script>alert(1)</script>\n[99] PASSED 100.00x</pre></script><img src=x onerror=alert(2)>"
    "\"'><svg onload=alert(3)> javascript:alert(4) </textarea><style>*{display:none}</style>"
)


_PROFILE = Profile(
    workload="default",
    call_ns=100.0,
    minimal_bytes=1,
    tool="ncu",
    kernels=(
        KernelProfile(
            kernel="k",
            time_ns=100.0,
            units=(Share(name="DRAM", share=0.5),),
            stalls=(Share(name="memory", share=0.25),),
            occupancy=0.5,
            possible_occupancy=0.75,
            occupancy_limit="registers",
        ),
    ),
    lines=(HotLine(line=1, share=0.5, file="f", stall="memory"),),
    counters=(Figure(name="cycles", value=7.0),),
)

SPEC = run_spec(
    "first", left_out=(ModelLimit(model="m", missing="aten.relu"),), strategy="gradient"
)


def fill(folder: Path) -> None:
    """Fill a data folder with a run called "first" and its exchange."""
    with pytest.MonkeyPatch.context() as patch:
        # Names are checked where they come in, and older stores hold all.
        patch.setattr("archive_svc.run.run_limits.check_name", lambda *_: None)
        asyncio.run(_fill(folder))


def hostile(value: Any, *kept: str) -> Any:
    """Return `value` with every text of every part hostile, but for fields named in `kept`."""
    if type(value) is str:
        return value + HOSTILE
    if isinstance(value, tuple):
        return tuple(hostile(item, *kept) for item in value)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    fields = [f.name for f in dataclasses.fields(value) if f.init and f.name not in kept]
    return dataclasses.replace(value, **{n: hostile(getattr(value, n), *kept) for n in fields})


async def _fill(folder: Path) -> None:
    archive = LocalArchive(f"sqlite:///{folder / 'runs.db'}")
    spec = hostile(SPEC, "name", "strategy", "check")
    # The name of a function, of which a task may say less than of the rest.
    task = dataclasses.replace(spec.task, check=HOSTILE[:200])
    spec = dataclasses.replace(spec, task=task)
    await archive.create_run(spec)
    selections = [(await archive.select("first")).sequence for _ in range(2)]
    for number, outcome in enumerate((EvaluationOutcome.PASSED, EvaluationOutcome.REJECTED)):
        source = KernelSource(
            language=Language.SYCL, device_code=f"// {number}{HOSTILE}", plan=f"# {HOSTILE}\n"
        )
        candidate = Candidate(source=source, model=HOSTILE)
        evaluation = make_evaluation(candidate, median_ns=100.0, outcome=outcome)
        finding = Finding(
            kind=FindingKind.COMPILE_ERROR,
            severity=Severity.ERROR,
            message="error",
            hint="do",
            rule="r",
        )
        evaluation = dataclasses.replace(
            evaluation, task=spec.task.digest, findings=(finding,), profile=_PROFILE
        )
        # Candidate, task and workloads are those of the run.
        evaluation = hostile(evaluation, "candidate", "task", "workload")
        await archive.add(
            "first", candidate, evaluation, request_id=str(number), selection=selections[number]
        )
    hint = HOSTILE.replace("\0", "")  # which no steering may have
    await archive.steer("first", Steering(action=SteeringAction.HINT, text=hint))
    await archive.finish_run("first", RunState.FINISHED)
    await archive.close()
    store = GeneratorStore(f"sqlite:///{folder / 'generator.db'}")
    exchange = Exchange(
        run="first",
        selection=1,
        asked=HOSTILE,
        seed=0,
        messages=(ChatMessage(role="user", content=f"# Direction\n{HOSTILE}"),),
        reply=HOSTILE,
        finish=FinishReason.STOP,
        usage=TokenUsage(
            model=HOSTILE, input_tokens=1, output_tokens=1, cost_usd=0.0, latency_ms=1.0
        ),
        recorded_unix_s=1.0,
    )
    ledger = RunLedger(store, ExchangeLog(folder / "exchanges"))
    await ledger.check_owner("first", is_proposal=True)
    await ledger.record(exchange, RequestCounter())
    await store.close()
