"""Task files and sidecars: what is read, and how each bad one is refused."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.plain import from_plain, to_plain
from kernel_foundry.domain.task import Precision, Size, Task, Tolerance, Workload
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.sdk.task_file import SIDECAR_KEYS, read_task

REFERENCE = """
from torch import nn
batch = 16
dim = 4 * 1024
scale = 0.5
twice = 1
twice = 2
class Model(nn.Module): ...
def get_inputs(): return []
"""


def write(folder: Path, sidecar: str | None = None, reference: str = REFERENCE) -> Path:
    path = folder / "op.py"
    path.write_text(reference)
    if sidecar is not None:
        (folder / "op.task.yaml").write_text(sidecar)
    return path


def test_without_a_sidecar_the_file_is_one_workload(tmp_path: Path) -> None:
    task = read_task(write(tmp_path))

    assert task.name == "op"
    assert task.reference == REFERENCE
    assert task.workloads == (Workload(name="default"),)
    assert task.tolerance is None
    assert task.precision is None
    assert task.training
    assert not task.tf32


def test_a_sidecar_sets_everything(tmp_path: Path) -> None:
    sidecar = """
workloads:
  - {}
  - {batch: 3, dim: 1001, held_out: true}
tolerance: {rtol: 1e-4, atol: 1.0e-5}
precision: bf16
tf32: false
least_bits: 12
training: false
library_ops: [linear]
check: get_inputs
constants: [mix, table, mix]
instructions: Be quick.
"""
    task = read_task(write(tmp_path, sidecar))

    sizes = (Size(name="batch", value=3), Size(name="dim", value=1001))
    assert task.workloads == (
        Workload(name="default"),
        Workload(name="batch=3,dim=1001", sizes=sizes, held_out=True),
    )
    assert task.tolerance == Tolerance(rtol=1e-4, atol=1e-5)
    assert task.precision is Precision.BF16
    assert task.least_bits == 12.0
    assert not task.training
    assert task.library_ops == ("linear",)
    assert task.check == "get_inputs"
    assert task.constants == ("mix", "table")
    assert task.instructions == "Be quick."


def test_workloads_may_have_weights_flags_numbers_and_words(tmp_path: Path) -> None:
    """All of them are part of the task's identity."""
    reference = REFERENCE + "causal = False\nmode = 'sum'\nshift = -1.5\n"
    listed = "workloads:\n  - {}\n  - {batch: 4, causal: true, mode: mean, shift: 1e-4, scale: 2}\n"
    weighted = listed.replace("{}", "{weight: 3}")
    task, heavier = (read_task(write(tmp_path, text, reference)) for text in (listed, weighted))

    second = task.workloads[1]
    assert second.name == "batch=4,causal=True,mode=mean,shift=0.0001,scale=2"
    assert second.sizes == (Size(name="batch", value=4),)
    assert {s.name: s.value for s in second.scalars} == {
        "causal": True,
        "mode": "mean",
        "shift": 1e-4,
        "scale": 2,
    }
    assert heavier.weight_of("default") == 3.0
    without = replace(second, scalars=())
    others = (heavier, replace(task, workloads=(task.workloads[0], without)))
    assert len({task.digest, *(other.digest for other in others)}) == 3


def test_workloads_have_tolerances_within_the_tasks(tmp_path: Path) -> None:
    listed = (
        "tolerance: {rtol: 1e-2, atol: 1e-2, matched: 0.9}\n"
        "workloads: [{}, {batch: 4, tolerance: {rtol: 1e-3, atol: 1e-2, matched: 0.99}}]\n"
    )
    task = read_task(write(tmp_path, listed))
    assert task.tolerance == Tolerance(rtol=1e-2, atol=1e-2, matched=0.9)
    admitted = replace(task.tolerance, output_shares=(0.5,))
    assert task.tolerance_of("default", admitted) == admitted
    own = task.tolerance_of("batch=4", admitted)
    assert (own.rtol, own.matched, own.output_shares) == (1e-3, 0.99, (0.5,))
    stored = from_plain(Task, to_plain(task))
    assert stored == task
    others = [
        replace(task, tolerance=replace(task.tolerance, matched=0.8)),
        replace(task, workloads=tuple(replace(w, tolerance=None) for w in task.workloads)),
    ]
    assert len({task.digest, *(other.digest for other in others)}) == 3


def test_a_file_may_call_a_size_weight(tmp_path: Path) -> None:
    path = write(tmp_path, "workloads: [{weight: 64}]", REFERENCE + "weight = 8\n")
    (workload,) = read_task(path).workloads
    assert (workload.sizes, workload.weight) == ((Size(name="weight", value=64),), 1.0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("auto", ()), ("none", ("none",)), ("[]", ("none",)), ("[mm, bmm]", ("mm", "bmm"))],
)
def test_library_calls_are_the_references_own_or_none_or_listed(
    tmp_path: Path, value: str, expected: tuple[str, ...]
) -> None:
    assert read_task(write(tmp_path, f"library_ops: {value}\n")).library_ops == expected


def test_tf32_is_asked_for_and_part_of_the_identity(tmp_path: Path) -> None:
    plain = read_task(write(tmp_path))
    task = read_task(write(tmp_path, "tf32: true"))

    assert task.tf32
    assert task == replace(plain, tf32=True)
    assert task.digest != plain.digest


def test_tasks_stored_before_tf32_load_with_their_old_digest(tmp_path: Path) -> None:
    task = read_task(write(tmp_path))
    stored = to_plain(task)
    del stored["tf32"]

    assert from_plain(Task, stored) == task
    assert task.digest == content_digest(
        task.reference, repr(task.workloads), "None", "fp32", "True", "()"
    )


def test_the_file_is_never_executed(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    read_task(write(tmp_path, reference=f"open({str(mark)!r}, 'w')\n{REFERENCE}"))

    assert not mark.exists()


@pytest.mark.parametrize(
    ("sidecar", "message"),
    [
        ("worklods: []", "unknown key 'worklods': did you mean workloads?"),
        (
            "constants: mix",
            "constants: expected a list of inputs, parameters or buffers such as [mix]",
        ),
        (
            "constants: [3]",
            "constants: expected a list of inputs, parameters or buffers such as [mix]",
        ),
        ("[1, 2]", "expected keys with values"),
        ("workloads: [", "not valid YAML"),
        ("workloads: []", "expected a list such as"),
        ("workloads: [{batch: 0}]", "workloads[0].batch: expected a positive integer, got 0"),
        ("workloads: [{batch: 1.5}]", "expected a positive integer, got 1.5"),
        ("workloads: [{batch: true}]", "expected a positive integer, got True"),
        ("workloads: [{rows: 4}]", "'rows' is not a size of the task file"),
        ("workloads: [{scale: true}]", "scale: expected a value like the file's 0.5, got True"),
        ("workloads: [{scale: .inf}]", "scale: expected a value like the file's 0.5, got inf"),
        ("workloads: [{scale: tiny}]", "scale: expected a value like the file's 0.5, got 'tiny'"),
        ("workloads: [{twice: 4}]", "the file has: batch, dim, scale"),
        ("tolerance: {rtol: 1, atol: 0, matched: 0.3}", "tolerance.matched: expected a share"),
        ("workloads: [{tolerance: {rtol: 1, atol: 0}}]", "has to be within that of the task"),
        (
            "{tolerance: {rtol: 1, atol: 0}, workloads: [{tolerance: {rtol: 2, atol: 0}}]}",
            "has to be within that of the task",
        ),
        ("workloads: [{weight: 0}]", "workloads[0].weight: expected a number from 1e-06 to"),
        ("workloads: [{weight: true}]", "workloads[0].weight: expected a number from 1e-06 to"),
        ("workloads: [{}, {batch: 4, held_out: true, weight: 2}]", "no time that could count"),
        ("workloads: [{batch: 4}, {batch: 4}]", "'batch=4' is listed twice"),
        ("workloads: [{batch: 4, held_out: true}]", "all are held out"),
        ("workloads: [{batch: 4, held_out: 1}]", "held_out: expected true or false"),
        ("tolerance: {rtol: 1}", "expected auto or"),
        ("tolerance: {rtol: -1, atol: 0}", "tolerance.rtol: expected a number"),
        ("tolerance: {rtol: x, atol: 0}", "tolerance.rtol: expected a number"),
        ("least_bits: 40", "least_bits: expected bits from 1 to 24"),
        ("least_bits: true", "least_bits: expected bits from 1 to 24"),
        ("backward: [1]", "backward: expected true, false or a list"),
        ("backward: []", "backward: expected true, false or a list"),
        ("compare: maybe", "compare: expected true or false"),
        ("compare: false", "compare: without a comparison there has to be a check"),
        (
            "check: get_inputs\ncompare: false\nleast_bits: 12",
            "compare: without a comparison there has to be a check",
        ),
        ("precision: fp8", "expected one of fp32, fp16, bf16"),
        ("tf32: high", "tf32: expected true or false"),
        ("{tf32: true, precision: fp16}", "tf32: needs precision fp32"),
        ("training: sometimes", "training: expected true or false"),
        ("library_ops: [cholesky]", "unknown 'cholesky'"),
        ("check: absent", "check: expected a function of the task file, got 'absent'"),
        ("check: [1]", "check: expected a function of the task file"),
        ("instructions: [1]", "instructions: expected text"),
    ],
)
def test_a_bad_sidecar_is_refused_with_the_key_and_what_is_expected(
    tmp_path: Path, sidecar: str, message: str
) -> None:
    with pytest.raises(TaskInvalidError) as caught:
        read_task(write(tmp_path, sidecar))

    assert message in caught.value.message
    assert "op.task.yaml" in caught.value.message


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskInvalidError, match="No such file"):
        read_task(tmp_path / "nowhere.py")


def test_a_syntax_error_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(TaskInvalidError, match=r"op\.py, line 2: .*def get_inputs\("):
        read_task(write(tmp_path, reference="x = 1\ndef get_inputs(\n"))


def test_a_file_without_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskInvalidError, match=r"op\.py: no Model; a task is"):
        read_task(write(tmp_path, reference="def get_inputs(): return []\n"))


def test_the_page_tells_every_key_and_its_example_is_read(tmp_path: Path) -> None:
    page = Path("docs/task-file.md").read_text(encoding="utf-8")
    assert list(SIDECAR_KEYS) == re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert list(SIDECAR_KEYS) == re.findall(r"^(\w+):", example, re.MULTILINE)
    reference = REFERENCE.replace("batch = 16", "batch_size = 8").replace("4 * 1024", "64")
    reference += "def sums_to_one(inputs, expected, actual): ...\n"
    task = read_task(write(tmp_path, example, reference))
    assert [w.name for w in task.workloads] == [
        "default",
        "batch_size=16,dim=16384",
        "batch_size=3,dim=1001",
    ]
    assert task.tolerance == Tolerance(rtol=1e-4, atol=1e-5)


def test_files_without_an_end_are_no_task_files(tmp_path: Path) -> None:
    """Whoever made the folder may have put a device or a pipe where a file is looked for."""
    (tmp_path / "endless.py").symlink_to("/dev/zero")
    with pytest.raises(TaskInvalidError, match="larger than"):
        read_task(tmp_path / "endless.py")
    for number, make in enumerate((lambda path: path.symlink_to("/dev/zero"), os.mkfifo)):
        (tmp_path / f"task{number}.py").write_text(REFERENCE)
        make(tmp_path / f"task{number}.task.yaml")
        with pytest.raises(TaskInvalidError, match="no plain file"):
            read_task(tmp_path / f"task{number}.py")
