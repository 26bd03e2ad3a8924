"""Generated workloads of tiny sizes with one long axis, and those for plans that take no other."""

import math
import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluator_svc.builder.read_candidate import read_candidate
from evaluator_svc.cache.object_cache import BuiltUnit, ObjectCache
from evaluator_svc.languages import backend_of
from evaluator_svc.messages.builder import ReadCandidateReply, ReadCandidateRequest
from evaluator_svc.messages.locked import CandidateFailure, WorkloadNames
from evaluator_svc.pipeline.build import build as build_module
from evaluator_svc.pipeline.build.build import BuildResult, BuildSettings
from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.sizes.generated_workloads import SizeGroup, generated_workload
from evaluator_svc.sizes.long_axes import long_axis_workloads
from evaluator_svc.sizes.spare_use import is_spare_of_use
from evaluator_svc.sizes.spare_workloads import spare_workloads
from kernel_foundry.domain.admission import NamedTensor, TensorRole
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.plan.candidate_text import split
from tests.domain_values import H200
from tests.judge.judge_tasks import SOFTMAX, make_task

_ROWS_AND_COLS = (SizeGroup(keys=("rows",), value=512), SizeGroup(keys=("cols",), value=1024))


def _task(number: int = 0) -> Task:
    """Return a task that differs from others in its digest."""
    return make_task(f"{SOFTMAX}\n# {number}\n")


def _values(workload: Workload) -> tuple[int, ...]:
    return tuple(size.value for size in workload.sizes)


@pytest.mark.parametrize("number", range(4))
def test_each_axis_is_long_in_one_and_tiny_in_the_other(number: int) -> None:
    in_cols, in_rows = long_axis_workloads(_task(number), _ROWS_AND_COLS)
    (few_rows, many_cols), (many_rows, few_cols) = _values(in_cols[0]), _values(in_rows[0])
    # Multiples, for plans that ask for whole blocks.
    assert (many_rows, many_cols) == (5 * 512, 5 * 1024)
    assert {few_rows, few_cols} <= set(range(1, 8))
    # Where a long axis does not run, or only with more elements beside it.
    assert {min(_values(w)) >= 3 for w in in_cols} == {True, few_rows >= 3}
    assert max(_values(in_rows[-1])) < 8


def test_the_third_axis_is_long_beside_the_second_where_that_is_cheap() -> None:
    channels, scales = (SizeGroup(keys=(name,), value=32) for name in ("channels", "scales"))
    for further in ((channels,), (channels, scales)):
        in_cols, in_others = long_axis_workloads(_task(), (*further, *_ROWS_AND_COLS))
        assert _values(in_cols[0])[-1] == 5 * 1024
        few_cols = _values(in_others[0])[-1]
        assert few_cols < 8
        assert _values(in_others[0])[:-1] in (
            (*(160 for _ in further), 5 * 512),
            (2 * 32, 2 * 32, 2 * 512),
        )
        # If the module does not run with all of them, one is left.
        assert any(max(_values(w)[:-2]) < 8 and _values(w)[-2] == 5 * 512 for w in in_others)


def test_tasks_meet_different_tiny_sizes_and_a_task_the_same() -> None:
    cols = {_values(long_axis_workloads(_task(n), _ROWS_AND_COLS)[1][0])[1] for n in range(64)}
    assert cols == set(range(1, 8))
    task = _task()
    ways = [w for several in long_axis_workloads(task, _ROWS_AND_COLS) for w in several]
    assert ways == [w for several in long_axis_workloads(task, _ROWS_AND_COLS) for w in several]
    assert all(generated_workload(task, w.name) == w for w in ways)


def test_the_first_size_is_one_where_another_is_long() -> None:
    for n in range(8):
        in_cols, in_rows = long_axis_workloads(_task(n), _ROWS_AND_COLS)
        assert _values(in_cols[0])[0] == 1
        # Not where a module does not run with one.
        assert any(_values(w)[0] > 1 for w in in_cols)
        assert _values(in_rows[0])[0] == 5 * 512


def test_a_plan_of_whole_blocks_alone_meets_a_long_axis_beside_a_few_of_them() -> None:
    spare = [s for s in spare_workloads(_ROWS_AND_COLS) if s.is_long]
    cols, rows = (_values(s.workload) for s in spare)
    assert (cols[1] % 1024, rows[0] % 512) == (0, 0)
    assert (min(cols[1] / 1024, rows[0] / 512) >= 4, cols[0] % 64, rows[1] % 64) == (True, 0, 0)
    assert not any(s.is_long for s in spare_workloads(_ROWS_AND_COLS[:1]))


@pytest.mark.parametrize(
    ("taken", "of_use"), [((), True), ((72,), True), ((72, 128), False), ((37, 320), False)]
)
def test_a_spare_workload_is_of_use_where_no_other_is_nearly_as_long(
    taken: tuple[int, ...], *, of_use: bool
) -> None:
    others = [_names("other", rows).tensors for rows in taken]
    own = [_names("own", 64).tensors]
    assert is_spare_of_use(_names("spare", 320).tensors, others, own) is of_use


def test_a_long_axis_costs_no_more_than_what_is_timed() -> None:
    square = (SizeGroup(keys=("n",), value=2048),)
    (tiny,) = long_axis_workloads(_task(), square)
    assert all(_values(w)[0] < 8 for w in tiny)
    attention = (SizeGroup(keys=("batch",), value=64), SizeGroup(keys=("length",), value=2048))
    in_length, _ = long_axis_workloads(_task(), attention)
    assert all(b * n * n <= 64 * 2048 * 2048 for b, n in map(_values, in_length))


def test_sizes_that_have_to_keep_a_divisor_do() -> None:
    groups = (SizeGroup(keys=("channels",), value=96, takes_odd=False), *_ROWS_AND_COLS)
    ways = [w for several in long_axis_workloads(_task(), groups) for w in several]
    assert all(_values(w)[0] % 32 == 0 for w in ways)


def test_spare_sizes_have_what_a_plan_may_ask_for_the_smallest_first() -> None:
    spare = [s for s in spare_workloads(_ROWS_AND_COLS) if not s.is_long]
    sizes = [_values(s.workload) for s in spare]
    assert [math.prod(s) for s in sizes] == sorted(math.prod(s) for s in sizes)
    assert (512, 1024) not in sizes
    for rows, cols in ((512, 512), (256, 512), (64, 1024), (512, 1024)):  # what has to divide
        assert any(r % rows == 0 and c % cols == 0 for r, c in sizes)
    assert any(r == 512 and 1024 < c < 1100 for r, c in sizes)
    assert all(max(_values(s.workload)) <= 1088 for s in spare if s.is_near)
    assert spare_workloads(()) == ()


def _names(workload: str, rows: int, **fields: bool) -> WorkloadNames:
    tensors = tuple(
        NamedTensor(name=name, role=role, dtype="float32", shape=(rows, 8))
        for name, role in (("x", TensorRole.INPUT), ("out", TensorRole.OUTPUT))
    )
    return WorkloadNames(workload=workload, tensors=tensors, scalars=(), **fields)


_PLAN = """```cuda
extern "C" __global__ void copy(const float* x, float* out, int count) {{
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < count) out[i] = x[i];
}}
```
```python
{head}
def launch(x, out):
    {require}
    copy[cdiv(x.numel(), 64), 64](x, out, x.numel())
```
"""
_MACRO = 'CONST = {"ROWS": "x.shape[0]"}'


_WORKLOADS = (
    _names("own", 64),
    _names("odd", 37, is_optional=True),
    _names("half", 32, is_optional=True, is_spare=True),
    _names("twice", 128, is_optional=True, is_spare=True),
)


def _read(
    require: str, head: str = "", workloads: tuple[WorkloadNames, ...] = _WORKLOADS
) -> ReadCandidateReply:
    request = ReadCandidateRequest(
        source=split(_PLAN.format(head=head, require=require)),
        configuration=(),
        device=H200,
        workloads=workloads,
    )
    return read_candidate(request, backend_of(H200.language).toolchain())


def test_spare_workloads_are_looked_at_where_a_plan_takes_no_other() -> None:
    assert _read("").left_out == ("half", "twice")
    assert _read("require(x.shape[0] % 32 == 0)").left_out == ("odd", "twice")
    assert _read("require(x.shape[0] % 64 == 0)").left_out == ("odd", "half")
    assert _read("assert x.shape[0] == 64").left_out == ("odd", "half", "twice")


def test_only_what_a_plan_takes_is_built() -> None:
    read = _read("require(x.shape[0] % 64 == 0)", _MACRO)
    assert (read.left_out, read.unit_of_workload) == (("odd", "half"), (0, 0, 0, 1))
    # The generated one may still not compile: then one of the others is built.
    read = _read("", _MACRO)
    assert (read.left_out, len(read.units)) == ((), 4)


def _built(
    outcomes: dict[int, bool | None], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[int], frozenset[int]]:
    """Return which of four units are compiled and left out, the first needed, the last two spare.

    Args:
        outcomes: Whether optional units compile; None: the builder is killed.
        monkeypatch: Takes the place of the compiler.
    """
    compiled = []

    def compile_one(process: Any, unit: int, seconds: float, settings: Any) -> Any:
        compiled.append(unit)
        succeeded = outcomes.get(unit, True)
        if succeeded is None:
            return CandidateFailure(outcome=EvaluationOutcome.TIMEOUT, findings=())
        return BuiltUnit(
            code=b"code" if succeeded else b"", assembly=b"", log="", build_ns=1.0, findings=()
        )

    monkeypatch.setattr(build_module, "_compile", compile_one)
    read = _read("", _MACRO)
    result = build_module.build(
        cast(ChildProcess, SimpleNamespace(process_id=os.getpid())),
        read,
        cast(ObjectCache, _NoCache()),
        BuildSettings(device=H200, compiler_version="", seconds=1.0, memory_bytes=1),
        optional=frozenset({1, 2, 3}),
        spare=(2, 3),
    )
    assert isinstance(result, BuildResult)
    return compiled, result.left_out


class _NoCache:
    def get(self, key: str) -> None:
        return None

    def put(self, key: str, unit: BuiltUnit) -> None:
        pass


def test_spare_units_are_built_until_one_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _built({}, monkeypatch) == ([0, 1], frozenset({2, 3}))
    assert _built({1: False}, monkeypatch) == ([0, 1, 2], frozenset({1, 3}))
    assert _built({1: False, 2: False}, monkeypatch) == ([0, 1, 2, 3], frozenset({1, 2}))


def test_a_builder_that_is_lost_to_an_optional_unit_fails_no_candidate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _built({1: None}, monkeypatch) == ([0, 1], frozenset({1, 2, 3}))


def test_no_more_units_are_built_for_sizes_that_may_be_left_out_than_a_verdict_has_time_for() -> (
    None
):
    more = tuple(_names(f"odd {rows}", rows, is_optional=True) for rows in range(1, 8))
    read = _read("", _MACRO, (_names("own", 64), *more, _names("again", 64, is_optional=True)))
    assert len(read.units) == 5
    assert read.left_out == ("odd 5", "odd 6", "odd 7")  # what needs no unit of its own is taken
