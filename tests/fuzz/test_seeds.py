"""Every input that was kept, and small damage to it, leaves every reader standing."""

import random
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

SEEDS = Path(__file__).with_name("seeds")
_DAMAGED = 40
"""Variants of each seed; the search itself is `python -m tests.fuzz`."""

_FILES = sorted(path for path in SEEDS.glob("*/*") if path.is_file())


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def test_every_target_has_seeds() -> None:
    """A folder that is no target, or a target without seeds, would be tested by nothing."""
    assert {path.parent.name for path in _FILES} == set(TARGETS)


@pytest.mark.parametrize("path", _FILES, ids=_name)
def test_a_seed_leaves_its_reader_standing(path: Path) -> None:
    """What once broke a reader, and what a reader ought to understand."""
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("path", _FILES, ids=_name)
def test_a_damaged_seed_leaves_its_reader_standing(path: Path) -> None:
    """Bytes changed, lost, doubled and cut off; the same ones every time."""
    draw = random.Random(_name(path))
    for _ in range(_DAMAGED):
        TARGETS[path.parent.name](_damaged(path.read_bytes(), draw))


def _damaged(data: bytes, draw: random.Random) -> bytes:
    for _ in range(draw.randrange(1, 4)):
        start = draw.randrange(len(data) + 1)
        end = min(start + draw.choice((1, 1, 4, 16, 256)), len(data))
        damage = draw.randrange(4)
        if damage == 0:
            data = data[:start] + draw.randbytes(end - start) + data[end:]
        elif damage == 1:
            data = data[:start] + data[end:]
        elif damage == 2:
            data = data[:end] + data[start:end] * draw.randrange(1, 4) + data[end:]
        else:
            data = data[:start]
    return data
