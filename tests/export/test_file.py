"""The exported file as a text: its evidence, its readers, and what is tried before it is given."""

import base64
import math
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evaluator_svc.exported_form.trial import error_share
from evaluator_svc.judge.memory.host_memory import HostMemory
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.python_literal import packed
from kernel_foundry.evidence.record import read_records
from kernel_foundry.sdk.export import export
from kernel_foundry.sdk.export.torch_file import PARTS, torch_file
from kernel_foundry.sdk.export.winner import Winner, sizes_in_calls
from tests.export.conftest import TASK, imported, tried

RUNTIME = Path(export.__file__).with_name("runtime")


def written(text: str, folder: Path) -> Path:
    path = folder / "fast_linear.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_evidence_is_read_without_running_the_file(
    text: str, winner: Winner, tmp_path: Path
) -> None:
    path = written("raise SystemExit('was run')\n" + text, tmp_path)
    assert read_records(path) == (winner.record,)


def test_the_head_says_which_writes_of_weights_need_a_layout(text: str, winner: Winner) -> None:
    line = "`weight.data.copy_(...)`"
    assert line in text.partition("EVIDENCE")[0]
    before, _, rest = winner.record.source.plan.partition("def prepare")
    plan = f"{before}def launch(x, out):\n    pass\n"
    assert rest
    source = replace(winner.record.source, plan=plan)
    bare = replace(winner, record=replace(winner.record, source=source))
    assert line not in torch_file([bare], "fast")


def test_a_second_line_of_evidence_is_refused(text: str, tmp_path: Path) -> None:
    """One of them may be inside a string, and Python reads the other."""
    path = written(f"{text}\n'''\nEVIDENCE = ('x',)\n'''\n", tmp_path)
    with pytest.raises(InvalidArgumentError, match="2 of its lines assign EVIDENCE"):
        read_records(path)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        "EVIDENCE = ()\n",
        "EVIDENCE = ('no record',)\n",
        "EVIDENCE = (1,)\n",
        f"EVIDENCE = ({packed(b'{}')!r},)\n",
        f"EVIDENCE = ({packed(bytes(65 << 20))!r},)\n",
        f"EVIDENCE = ({', '.join([repr(packed(bytes(40 << 20)))] * 2)})\n",
        "EVIDENCE = (open('/etc/passwd'),)\n",
        "EVIDENCE = (" + "'x'," * 65,
        "EVIDENCE = (" + "(" * 1000,
        "EVIDENCE = ('" + "x" * 1000,
        "EVIDENCE = (\n" + "''\n" * 1000,
        f"EVIDENCE = ({packed(b'{}')!r},)\n" * 2,
        "not Python",
    ],
)
def test_what_holds_no_record_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="neither an exported file nor a record"):
        read_records(written(text, tmp_path))


def test_what_is_beside_the_evidence_is_not_parsed(
    text: str, winner: Winner, tmp_path: Path
) -> None:
    """Python's parser takes kilobytes for a line, and none of it is for this reader."""

    def peak(content: str) -> int:
        path = written(content, tmp_path)
        tracemalloc.start()
        try:
            assert read_records(path) == (winner.record,)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    lines = "a\n" * 500_000
    assert peak(lines + text.replace("'", '"')) < peak(text) + 10 * len(lines)


@pytest.mark.sycl
@pytest.mark.slow
def test_what_is_handed_out_was_right_on_all_workloads(text: str, winner: Winner) -> None:
    # A tensor is an answer as it is in a verdict, and so is a boolean of numpy.
    check = (
        "def looked_at(inputs, expected, actual):\n"
        "    is_right = actual[0].isclose(expected[0], atol=1e-5).all()\n"
        "    return is_right if len(actual[0]) == 64 else is_right.numpy()[()]\n"
    )
    looked_at = text.replace("def get_inputs():", f"{check}\n\ndef get_inputs():")
    assert looked_at != text
    report = tried(looked_at, winner, check="looked_at")
    assert [result.name for result in report.results] == ["rows=64", "rows=3"]
    assert not any(result.failure for result in report.results)
    assert "seccomp" in report.mechanisms
    timed, held_out = report.results
    assert timed.kernels_ns is not None
    assert timed.host_ns > 0
    assert timed.graph_ns is None
    assert held_out.kernels_ns is None
    exported = export.compared("", report, [winner.record.evaluation])
    limit = exported.workloads[0].verdict_ns
    assert limit is not None
    assert export.too_slow(exported, limit=timed.kernels_ns[0] / limit[2] / 2).startswith("rows=64")
    assert not export.too_slow(exported, limit=timed.kernels_ns[0] / limit[2] * 2)


@pytest.mark.sycl
@pytest.mark.slow
def test_a_file_that_computes_something_else_fails(text: str, winner: Winner) -> None:
    wrong = text.replace("**{'factor': factor,", "**{'factor': factor + 1,")
    assert wrong != text
    report = tried(wrong, winner)
    assert ["wrong by" in result.failure for result in report.results] == [True, True]


@pytest.mark.parametrize(
    ("count", "value", "is_right"),
    [(0, 7.0, True), (10, 7.0, True), (11, 7.0, False), (1, math.nan, False), (1, math.inf, False)],
)
def test_so_many_elements_may_be_wrong_and_none_no_number(
    count: int, value: float, *, is_right: bool
) -> None:
    tolerance = Tolerance(rtol=1e-5, atol=1e-5, matched=0.9)
    expected = torch.arange(100.0)
    found = expected.clone()
    found[20 : 20 + count] = value
    share = error_share([found], [expected], tolerance, is_scaled=False, memory=HostMemory())
    assert (share <= 1.0) == is_right


@pytest.mark.sycl
@pytest.mark.slow
def test_a_reference_that_changes_its_own_tensors_is_refused(text: str, winner: Winner) -> None:
    line = "        return self.linear(x) * self.factor\n"
    changing = text.replace(line, f"        self.linear.bias.add_(1.0)\n{line}")
    assert changing != text
    found = {result.failure for result in tried(changing, winner).results}
    assert found == {"the reference changes its own linear.bias"}


@pytest.mark.sycl
@pytest.mark.slow
def test_several_runs_make_one_file(winner: Winner, tmp_path: Path) -> None:
    small = replace(
        winner,
        objects=(replace(winner.objects[0], code=base64.b64encode(b"no SPIR-V").decode()),),
    )
    both = imported(torch_file([small, winner], "fast_both"), tmp_path, "fast_both")
    assert [s["object"] for one in both.SPECIALISATIONS for s in one["objects"]] == [0, 1]
    import torch

    model = both.Module(48, 40, 2.0)
    with torch.no_grad():
        model(torch.randn(8, 48))
    assert both.stats()["kernel"] == 1  # of the second: the first cannot be loaded


def test_runs_of_different_tasks_make_none(winner: Winner) -> None:
    other = replace(winner, record=replace(winner.record, task=replace(TASK, training=False)))
    with pytest.raises(InvalidArgumentError, match="differ in training"):
        torch_file([winner, other], "fast")


def test_names_that_the_reference_reads_itself_are_no_free_sizes() -> None:
    source = (
        "rows = 4\ncols = 8\ndeep = cols * 2\nunused = 3\n"
        "def half(x):\n    return x[:, : deep // 4]\n"
        "class Model:\n    def forward(self, x, rows=1):\n        return half(x) + rows\n"
        "def get_inputs():\n    return [rows, unused]\n"
    )
    assert sizes_in_calls(source) >= {"cols", "deep", "half"}
    assert not sizes_in_calls(source) & {"rows", "unused"}


@pytest.mark.parametrize(
    ("above", "value", "is_read"),
    [
        ("class Helper:\n    def __init__(self):\n        self.n = cols", "Helper().n", True),
        ("class Helper:\n    def __init__(self):\n        self.n = cols", "1", False),
        ("class Base:\n    def __init__(self):\n        self.n = cols\n"
         "class Helper(Base): pass", "Helper().n", True),
        ("def half(n=cols): return n", "half()", True),
        ("def half(*, n=cols): return n", "half()", True),
        ("@partial(of, cols)\ndef half(n): return n", "half()", True),
        ("half: int = cols", "half", True),
        ("half = 1\nhalf += cols", "half", True),
        ("for half in range(cols): pass", "half", True),
        ("if cols > 4:\n    half = 2", "half", True),
        ("half = cols", "1", False),
    ],
)  # fmt: skip
def test_sizes_that_a_call_reads_in_a_roundabout_way(above: str, value: str, is_read: bool) -> None:
    source = (
        f"cols = 8\n{above}\n"
        "class Model:\n    def __init__(self):\n        self.own = cols\n"
        f"    def forward(self, x):\n        return x * {value}\n"
    )
    assert ("cols" in sizes_in_calls(source)) is is_read


@pytest.mark.parametrize("device", ["opencl", "cuda"])
@pytest.mark.parametrize("queue", ["streams", "default_queue"])
def test_parts_of_the_file_have_names_of_their_own(device: str, queue: str) -> None:
    import ast

    names: list[str] = []
    usual = {"QUEUE": queue, "DEVICE": device}
    for part in ("task", *[usual.get(p, p) for p in PARTS], "model_new", "function"):
        for statement in ast.parse((RUNTIME / f"{part}.py").read_text()).body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                names.append(statement.name)
            elif isinstance(statement, ast.Assign | ast.AnnAssign):
                target = getattr(statement, "target", None) or statement.targets[0]
                names.append(ast.unparse(target))
    assert sorted(names) == sorted(set(names))


def test_both_queues_are_asked_alike() -> None:
    import ast

    def functions(part: str) -> set[str]:
        body = ast.parse((RUNTIME / f"{part}.py").read_text()).body
        given = {ast.unparse(s.target) for s in body if isinstance(s, ast.AnnAssign)}
        return given | {s.name for s in body if isinstance(s, ast.FunctionDef)}

    assert functions("streams") == functions("default_queue")
