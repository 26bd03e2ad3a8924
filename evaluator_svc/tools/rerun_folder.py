"""A candidate in a folder, as the rerun program takes it. The program is `rerun.py`."""

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.runner import LoadRequest
from kernel_foundry.domain.plain import from_json, to_json

_LOAD: Final = "load.json"
_DRAW: Final = "draw.json"
_OBJECT: Final = "object_{}.bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunInput:
    """A candidate and the inputs of a draw, to be run again under a tool."""

    load: LoadRequest
    codes: tuple[bytes, ...]
    """Object code of each unit."""
    draw: Draw
    """Its first seed's inputs are taken; without handles, zeros."""


def write(folder: Path, rerun: RerunInput) -> None:
    """Put a candidate into an empty folder."""
    one_seed = dataclasses.replace(rerun.draw, seed_count=1, handles=rerun.draw.handles[:1])
    (folder / _LOAD).write_text(to_json(rerun.load), encoding="utf-8")
    (folder / _DRAW).write_text(to_json(one_seed), encoding="utf-8")
    for index, code in enumerate(rerun.codes):
        (folder / _OBJECT.format(index)).write_bytes(code)


def read(folder: Path) -> RerunInput:
    """Return the contents of a folder.

    Raises:
        OSError: a file is missing.
        PlainError: a file is no message.
    """
    load = from_json(LoadRequest, (folder / _LOAD).read_bytes())
    codes = tuple(
        (folder / _OBJECT.format(index)).read_bytes() for index in range(len(load.kernels))
    )
    return RerunInput(load=load, codes=codes, draw=from_json(Draw, (folder / _DRAW).read_bytes()))


def rerun_command(folder: Path, *, is_profiled: bool = False) -> tuple[str, ...]:
    """Return the command that runs a folder's candidate.

    `is_profiled`: a profiler that waits for cuProfilerStart looks at `launch` alone.
    """
    command = (sys.executable, "-m", "evaluator_svc.tools.rerun", str(folder))
    return (*command, "profiled") if is_profiled else command
