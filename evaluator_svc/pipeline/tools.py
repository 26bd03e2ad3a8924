"""Stage tools: the vendor's own look at a candidate that failed, or that is measured afresh.

A candidate is run once more for it, outside its evaluation. Knows nothing of what tools print.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_svc import tools
from evaluator_svc.messages.exchange import Draw
from evaluator_svc.messages.locked import CandidateFailed, LoadRequest
from evaluator_svc.sandbox.host_paths import PASSED_ON, package_root
from evaluator_svc.tools import replay_folder
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding
from kernel_foundry.scratch import scratch_folder

_CHECKS: Final = {
    EvaluationOutcome.CRASHED: tools.Check.MEMORY,
    EvaluationOutcome.NONDETERMINISTIC: tools.Check.RACES,
}
"""What is looked for after each failure that a tool can explain."""
_PROFILED_LAUNCHES: Final = 8
_TOOL_VARIABLES: Final = ("PATH", "HOME", "TMPDIR", "LANG", *PASSED_ON)
"""The tools look for themselves and for a place to write; no key or token is among these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """A loaded candidate as it can be run again."""

    load: LoadRequest
    codes: tuple[bytes, ...]


def explain_failure(rerun: Rerun, draw: Draw, failure: CandidateFailed) -> tuple[Finding, ...]:
    """Return what a tool finds in a failed candidate; empty where no tool can tell."""
    check = _CHECKS.get(failure.outcome)
    if check is None:
        return ()
    sizes = {slot.name: slot.size_bytes for slot in draw.slots}
    with _command(rerun, draw) as (command, environment):
        return tools.sanitize(command, environment, check=check, tensor_bytes=sizes)


def profile(rerun: Rerun, draw: Draw, kernels: tuple[str, ...]) -> tuple[Finding, ...]:
    """Return what the profiler measures of a workload's kernels."""
    with _command(rerun, draw) as (command, environment):
        return tools.profile(command, environment, kernels=kernels, launch_count=_PROFILED_LAUNCHES)


@contextmanager
def _command(rerun: Rerun, draw: Draw) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    with scratch_folder("tools") as name:
        folder = Path(name)
        replay = replay_folder.ReplayInput(load=rerun.load, codes=rerun.codes, draw=draw)
        replay_folder.write(folder, replay)
        kept = {n: os.environ[n] for n in _TOOL_VARIABLES if n in os.environ}
        yield tools.replay_command(folder), {**kept, "PYTHONPATH": package_root()}
