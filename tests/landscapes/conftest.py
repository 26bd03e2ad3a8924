"""Small landscapes whose best variants are known."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.measures import Measures
from landscapes.landscape import Landscape, Parameter, Variant
from landscapes.landscape_file import write_landscape

Point = Mapping[str, Any]

SPACE = {
    "BLOCK": (32, 64, 128, 256),
    "VEC": (1, 2, 4),
    "TILE": ("no", "yes"),
    "ASYNC": (False, True),
}


def time_of(point: Point) -> float:
    """Return a separable time; the best has BLOCK 128, VEC 4, TILE yes and ASYNC."""
    time_ns = 1e6 * {32: 1.6, 64: 1.2, 128: 1.0, 256: 1.1}[point["BLOCK"]]
    time_ns *= {1: 1.5, 2: 1.2, 4: 1.0}[point["VEC"]]
    time_ns *= {"no": 1.3, "yes": 1.0}[point["TILE"]]
    return time_ns * (1.0 if point["ASYNC"] else 1.07)


def measures_of(point: Point) -> Measures:
    memory = 2 if point["TILE"] == "yes" else int(point["VEC"] > 1)
    return Measures(memory=memory, algorithm=int(point["ASYNC"]), synchronization=0)


def samples(time_ns: float) -> tuple[float, ...]:
    return tuple(time_ns * (1 + 0.002 * n) for n in (-2, -1, 0, 0, 0, 1, 2))


def make_landscape(
    *,
    name: str = "separable",
    outcome: Callable[[Point], EvaluationOutcome] = lambda _: EvaluationOutcome.PASSED,
    measures: Callable[[Point], Measures | None] = measures_of,
    keep: Callable[[Point], bool] = lambda _: True,
    baseline_ns: float | None = None,
) -> Landscape:
    """Return a landscape over `SPACE`; what does not pass has no samples."""
    variants = []
    for values in itertools.product(*SPACE.values()):
        point = dict(zip(SPACE, values, strict=True))
        if not keep(point):
            continue
        ended = outcome(point)
        passed = ended is EvaluationOutcome.PASSED
        variants.append(
            Variant(
                values=values,
                measures=measures(point),
                outcome=ended,
                times_ns=samples(time_of(point)) if passed else (),
            )
        )
    return Landscape(
        name=name,
        parameters=tuple(Parameter(name=n, values=v) for n, v in SPACE.items()),
        variants=tuple(variants),
        baseline_ns=baseline_ns,
    )


def fails_in_part(point: Point) -> EvaluationOutcome:
    """Let a third of the variants fail, in several ways."""
    if point["BLOCK"] == 256 and point["VEC"] == 4:
        return EvaluationOutcome.LAUNCH_ERROR
    if point["TILE"] == "no" and point["VEC"] == 2:
        return EvaluationOutcome.WRONG_RESULT
    return EvaluationOutcome.COMPILE_ERROR if point["BLOCK"] == 32 else EvaluationOutcome.PASSED


LANDSCAPES = {
    "separable": make_landscape(),
    "one cell": make_landscape(
        measures=lambda _: Measures(memory=1, algorithm=1, synchronization=1)
    ),
    "no measures": make_landscape(measures=lambda _: None),
    "a third fails": make_landscape(outcome=fails_in_part),
    "all failed but one": make_landscape(
        outcome=lambda p: (
            EvaluationOutcome.PASSED
            if tuple(p.values()) == (64, 2, "yes", True)
            else EvaluationOutcome.WRONG_RESULT
        )
    ),
    "two variants": make_landscape(
        keep=lambda p: (p["VEC"], p["TILE"], p["ASYNC"]) == (4, "yes", True) and p["BLOCK"] < 128
    ),
    "one variant": make_landscape(keep=lambda p: tuple(p.values()) == (128, 4, "yes", True)),
    "constrained": make_landscape(keep=lambda p: (p["BLOCK"] > 64) == (p["VEC"] > 1)),
}


@pytest.fixture(params=LANDSCAPES.values(), ids=LANDSCAPES.keys())
def any_landscape(request: pytest.FixtureRequest) -> Landscape:
    found: Landscape = request.param
    return found


@pytest.fixture
def landscape_file(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("landscape") / "separable.jsonl.gz"
    write_landscape(path, make_landscape())
    return path
