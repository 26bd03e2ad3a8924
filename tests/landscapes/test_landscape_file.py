"""Landscape files: what is written is read again; what is wrong is refused with its line."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.launch_facts import LaunchFacts
from kernel_foundry.domain.measures import Measures
from kernel_foundry.errors import InvalidArgumentError
from landscapes.landscape import Landscape, Parameter, Variant
from landscapes.landscape_file import read_landscape, write_landscape
from tests.landscapes.conftest import make_landscape

HEADER = {
    "landscape": 1,
    "name": "example",
    "parameters": [{"name": "BLOCK", "values": [64, 128]}, {"name": "FAST", "values": [False, 1]}],
}
ROW = {
    "parameters": {"BLOCK": 64, "FAST": False},
    "measures": {"memory": 1, "algorithm": 0, "synchronization": 3},
    "outcome": "PASSED",
    "times_ns": [1000, 1010.5],
}


def lines_of(*objects: Any) -> str:
    return "".join(json.dumps(o) + "\n" for o in objects)


def with_row(**changes: Any) -> str:
    return lines_of(HEADER, {**ROW, **changes})


def with_header(**changes: Any) -> str:
    return lines_of({**HEADER, **changes}, ROW)


VALUES = st.one_of(
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.text(max_size=5),
)
LEVELS = st.integers(0, 3)
MEASURES = st.none() | st.builds(Measures, memory=LEVELS, algorithm=LEVELS, synchronization=LEVELS)


COUNTS = st.integers(0, 2**31)
LAUNCHES = st.builds(
    LaunchFacts, launch_count=COUNTS, group_count=COUNTS, group_size=COUNTS, shared_bytes=COUNTS
)


@st.composite
def landscapes(draw: st.DrawFn) -> Landscape:
    distinct = st.lists(VALUES, min_size=1, max_size=3, unique_by=lambda v: (type(v) is bool, v))
    names = draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3, unique=True))
    parameters = [Parameter(name=n, values=tuple(draw(distinct))) for n in names]
    times = st.lists(st.floats(1, 1e12), min_size=1, max_size=4).map(tuple)
    first = Variant(
        values=tuple(p.values[0] for p in parameters),
        measures=draw(MEASURES),
        outcome=EvaluationOutcome.PASSED,
        launches=draw(st.none() | LAUNCHES),
        times_ns=draw(times),
    )
    last_values = tuple(p.values[-1] for p in parameters)
    failed = EvaluationOutcome.WRONG_RESULT
    last = Variant(values=last_values, measures=draw(MEASURES), outcome=failed)
    is_alone = all(len(p.values) == 1 for p in parameters)
    return Landscape(
        name=draw(st.text(min_size=1).filter(str.strip)),
        parameters=tuple(parameters),
        variants=(first,) if is_alone else (first, last),
        task=draw(st.text(max_size=5)),
        baseline_ns=draw(st.none() | st.floats(1, 1e12)),
    )


@given(landscape=landscapes(), suffix=st.sampled_from([".jsonl", ".jsonl.gz"]))
def test_round_trip(
    landscape: Landscape, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"round_trip{suffix}"
    write_landscape(path, landscape)
    assert landscape == read_landscape(path)


def test_equal_landscapes_are_equal_files(tmp_path: Path) -> None:
    for name in ("first.jsonl.gz", "second.jsonl.gz"):
        write_landscape(tmp_path / name, make_landscape())
    first, second = (p.read_bytes() for p in sorted(tmp_path.iterdir()))
    assert first == second


def test_gzip_is_seen_by_content_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "downloaded"
    path.write_bytes(gzip.compress(("\n" + with_row(note="ignored") + "\n\n").encode()))
    (variant,) = read_landscape(path).variants
    assert variant.values == (64, False)
    assert variant.times_ns == (1000.0, 1010.5)


def test_a_boolean_is_not_a_number(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    rows = [{**ROW, "parameters": {"A": value}} for value in (0, False)]
    path.write_text(
        lines_of({**HEADER, "parameters": [{"name": "A", "values": [0, False]}]}, *rows)
    )
    assert [type(v.values[0]) for v in read_landscape(path).variants] == [int, bool]


def test_what_is_optional_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "short.jsonl"
    failed = {"parameters": {"BLOCK": 128.0, "FAST": 1}, "outcome": "CRASHED"}
    path.write_text(with_row(measures=None) + lines_of(failed))
    landscape = read_landscape(path)
    assert (landscape.baseline_ns, landscape.device) == (None, "")
    assert landscape.variants[1].values == (128, 1)
    assert landscape.variants[1].measures is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("empty", "docs/landscapes.md")),
        ("BLOCK,time\n64,1.5\n", ("line 1", "not JSON", "one JSON object a line")),
        ("[1]\n", ("line 1", "expected a JSON object")),
        ("[" * 100_000, ("line 1", "not JSON")),
        (lines_of(ROW), ("line 1", '"landscape": 1')),
        (with_header(landscape=2), ("line 1", "newer", "update")),
        (with_header(landscape="one"), ("line 1", "expected 1")),
        (with_header(landscape=True), ("line 1", "expected 1")),
        (with_header(name=""), ("line 1", "name")),
        (with_header(name=7), ("line 1", "name")),
        (with_header(device=7), ("line 1", "device")),
        (with_header(baseline_ns=0), ("line 1", "baseline_ns", "above 0")),
        (with_header(baseline_ns="fast"), ("line 1", "baseline_ns")),
        (with_header(parameters=[]), ("line 1", "parameters")),
        (with_header(parameters=["BLOCK"]), ("line 1", '"name" and "values"')),
        (with_header(parameters=[{"name": "BLOCK", "values": []}]), ("BLOCK", "at least one")),
        (with_header(parameters=[{"name": "A", "values": [[1]]}]), ("A lists [1]",)),
        (with_header(parameters=[{"name": "A", "values": [1, 1.0]}]), ("A lists a value twice",)),
        (with_header(parameters=[{"name": "A", "values": [1]}] * 2), ("same name",)),
        (lines_of(HEADER), ("none of its 0 variants", "PASSED")),
        (with_row(outcome="CRASHED"), ("none of its 1 variants", "PASSED")),
        (lines_of(HEADER) + "{\n", ("line 2", "not JSON")),
        (lines_of(HEADER, ROW, ROW), ("line 3", "line 2")),
        (with_row(parameters=[64, False]), ("line 2", "BLOCK, FAST")),
        (with_row(parameters={"BLOCK": 64}), ("line 2", "BLOCK, FAST")),
        (with_row(parameters={"BLOCK": 32, "FAST": False}), ("line 2", "BLOCK is 32", "header")),
        (with_row(parameters={"BLOCK": 64, "FAST": True}), ("line 2", "FAST is True")),
        (with_row(parameters={"BLOCK": [], "FAST": False}), ("line 2", "BLOCK is []")),
        (with_row(outcome="passed"), ("line 2", "expected one of PASSED")),
        (with_row(outcome=["PASSED"]), ("line 2", "expected one of PASSED")),
        (with_row(launches={"launch_count": 1}), ("line 2", '"launches"', "group_count")),
        (with_row(launches=[]), ("line 2", '"launches"')),
        (with_row(measures={"memory": 1}), ("line 2", "memory, algorithm, synchronization")),
        (with_row(measures={**ROW["measures"], "memory": 4}), ("line 2", "memory is 4", "0 to 3")),
        (with_row(measures={**ROW["measures"], "memory": True}), ("line 2", "memory is True")),
        (with_row(times_ns=[]), ("line 2", "at least one sample")),
        (with_row(times_ns=[0]), ("line 2", "above 0")),
        (with_row(times_ns=["1"]), ("line 2", "nanoseconds")),
        (with_row(times_ns=1000), ("line 2", "list")),
        (with_row(times_ns=[10**4000]), ("line 2", "finite")),
        (with_row(times_ns=[float("nan")]), ("line 2", "NaN", "leave such samples out")),
    ],
)
def test_bad_file_is_refused_with_its_line_and_what_to_do(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError) as refusal:
        read_landscape(path)
    for word in (str(path), *words):
        assert word in refusal.value.message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(with_row().encode())[:40], "damaged gzip"),
        (b"\x1f\x8bnot gzip at all", "damaged gzip"),
        (b'{"landscape": 1, "name": "\xff"}\n', "not UTF-8"),
    ],
    ids=["cut short", "only the magic", "no text"],  # the first one's bytes hold the time
)
def test_damaged_file_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "damaged.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match=words):
        read_landscape(path)


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.jsonl", tmp_path):
        with pytest.raises(InvalidArgumentError, match="cannot be read"):
            read_landscape(path)


def test_failed_write_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    landscape = make_landscape()
    write_landscape(path, landscape)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_landscape(path, replace(landscape, baseline_ns=float("nan")))
    assert landscape == read_landscape(path)
