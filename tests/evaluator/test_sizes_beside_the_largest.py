"""A generated workload lies beside the largest timed one, where the small ones are much smaller."""

import dataclasses

from evaluator_svc.pipeline.correctness.generated_sizes import has_one_seed
from evaluator_svc.sizes.generated_workloads import SizeGroup, beside_largest, generated_workload
from evaluator_svc.sizes.memory_needs import WorkloadSizes
from kernel_foundry.domain.admission import NamedTensor, TensorRole, WorkloadAdmission
from kernel_foundry.domain.task import Size, Task, Workload
from tests.domain_values import workload_admission
from tests.judge.judge_tasks import SOFTMAX, make_task


def _task(*workloads: tuple[int, int], held_out: tuple[int, int] | None = None) -> Task:
    sized = [
        Workload(
            name=f"{rows}x{cols}",
            sizes=(Size(name="rows", value=rows), Size(name="cols", value=cols)),
            held_out=(rows, cols) == held_out,
        )
        for rows, cols in (*workloads, *([held_out] if held_out else []))
    ]
    return dataclasses.replace(make_task(SOFTMAX), workloads=tuple(sized))


_LARGE = (SizeGroup(keys=("rows",), value=1024), SizeGroup(keys=("cols",), value=4096))


def _sizes(workload: Workload) -> dict[str, int]:
    return {size.name: size.value for size in workload.sizes}


def test_all_sizes_are_odd_and_a_little_larger() -> None:
    first, *others = beside_largest(_task((256, 512), (1024, 4096)), _LARGE)
    assert first.held_out
    sizes = _sizes(first)
    assert 1024 < sizes["rows"] <= 1024 + 64
    assert 4096 < sizes["cols"] <= 4096 + 64
    assert all(value % 2 for value in sizes.values())
    # Where a module does not run with all of them changed, one alone may do.
    assert {"rows": sizes["rows"], "cols": 4096} in map(_sizes, others)


def test_the_same_task_has_the_same_and_finds_them_by_name() -> None:
    task = _task((1024, 4096))
    several = beside_largest(task, _LARGE)
    assert several == beside_largest(task, _LARGE)
    assert all(generated_workload(task, w.name) == w for w in several)


def test_small_tasks_have_none() -> None:
    small = (SizeGroup(keys=("rows",), value=32), SizeGroup(keys=("cols",), value=64))
    assert not beside_largest(_task((32, 64)), small)


def test_tasks_with_held_out_sizes_know_no_generated_ones() -> None:
    task = _task((1024, 4096), held_out=(3, 1001))
    assert generated_workload(task, "rows=31,cols=61") is None


def test_a_large_one_is_judged_on_one_seed() -> None:
    def workload(rows: int, *, is_generated: bool = True) -> WorkloadAdmission:
        tensors = tuple(
            NamedTensor(name=role.value, role=role, dtype="float32", shape=(rows, 1024))
            for role in (TensorRole.INPUT, TensorRole.OUTPUT)
        )
        assert WorkloadSizes.of(tensors).set_bytes == 8192 * rows
        return workload_admission("w", held_out=True, tensors=tensors, is_generated=is_generated)

    assert has_one_seed(workload(4001))
    assert not has_one_seed(workload(1021))
    assert not has_one_seed(workload(4001, is_generated=False))
