"""Whatever a suite's files hold, an import says what became of each: nothing else is raised."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_foundry.sdk.suite.published_kernels import kernel_for, read_published
from kernel_foundry.sdk.task_import.writing import import_suite
from tests.sdk.task_import.suite_folder import TASK
from tests.sdk.task_import.test_flashinfer import DEFINITION
from tests.sdk.task_import.test_gpu_mode import REFERENCE
from tests.sdk.task_import.test_gpu_mode import TASK as TYPES

_FEW = settings(max_examples=60, deadline=None)
_NAMES = st.sampled_from(
    ["rows", "cols", "seed", "held_out", "Model", "class", "", "a b", "\ud800"]
)
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([1, 1 << 41, -1, "9" * 5000, TASK, "x" * 3000])
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
_TEXTS = st.text(max_size=80) | st.sampled_from([TASK, REFERENCE, "(" * 200, "x = 1\0", "\ud800"])
_SIMPLE = st.dictionaries(_NAMES, st.integers(0, 3) | st.booleans() | st.floats(), max_size=2)
"""As settings are, so that what comes after their reading is reached as well."""


def _with_keys(*keys: str, of: st.SearchStrategy[Any] = _VALUES) -> st.SearchStrategy[Any]:
    """Objects with some of the keys that a format has, or any value."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(keys, of)) | _VALUES


def _import(files: dict[str, str], format_name: str) -> None:
    """Every entry that is not imported has its reason."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _write(folder / "suite", files)
        suite = import_suite(folder / "suite", folder / "out", format_name=format_name)
        assert suite.imported or suite.left_out
        assert all(entry.reason for entry in suite.left_out)


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))


@_FEW
@given(text=_TEXTS)
def test_kernelbench(text: str) -> None:
    _import({"level1/1_a.py": text}, "kernelbench")


@_FEW
@given(record=_with_keys("level_id", "task_id", "ref_code"), text=_TEXTS)
def test_cuda_l1(record: Any, text: str) -> None:
    _import({"a.json": json.dumps({"ref_code": text}) + f"\n{json.dumps(record)}\n"}, "cuda-l1")
    _import({"a.jsonl": f"{json.dumps(record)}\n{text}\n"}, "cuda-l1")


_CONFIG_KEYS = [
    f"{kind}_{part}_configs" for kind in ("single", "multi") for part in ("init", "input", "shared")
]
_FUNC = TASK.replace("def forward(", "def __init__(self, rows=1): ...\n\n    def forward(").replace(
    "get_inputs()", "get_inputs(rows=1, *, cols=2)"
)


@_FEW
@given(
    config=_with_keys(*_CONFIG_KEYS, of=st.lists(_SIMPLE, max_size=3) | _VALUES),
    text=st.just(_FUNC) | _TEXTS,
)
def test_robust_kbench(config: Any, text: str) -> None:
    files = {"t/func_forward.py": text, "t/config_forward.json": json.dumps(config)}
    files |= {"t/func_backward.py": text, "t/config_backward.json": json.dumps(config)}
    _import(files, "robust-kbench")


@_FEW
@given(
    task=_with_keys("files", "description", "tests", "multi_gpu", "ranking_by"),
    benchmarks=st.lists(_SIMPLE, max_size=3) | _VALUES,
    text=st.just(REFERENCE) | _TEXTS,
)
def test_gpu_mode(task: Any, benchmarks: Any, text: str) -> None:
    whole = {**task, "benchmarks": benchmarks} if isinstance(task, dict) else task
    files = {"t/task.yml": json.dumps(whole), "t/reference.py": text, "t/task.py": TYPES}
    _import(files | {"t/utils.py": "def make_check(x): ...\n"}, "gpu-mode")


@_FEW
@given(
    part=_with_keys(*DEFINITION),
    workload=_with_keys("axes", "inputs", "tolerance"),
    tolerance=_with_keys("max_rtol", "max_atol", "required_matched_ratio"),
)
def test_flashinfer(part: Any, workload: Any, tolerance: Any) -> None:
    good = {"axes": {"rows": 4}, "inputs": {"index": {"type": "custom"}}, "tolerance": tolerance}
    for definition in ({**DEFINITION, **part} if isinstance(part, dict) else part, DEFINITION):
        lines = f"{json.dumps(good)}\n{json.dumps(workload)}\n"
        files = {"7/definition.json": json.dumps(definition), "7/workload.jsonl": lines}
        _import(files, "flashinfer")


@_FEW
@given(
    solution=_with_keys("spec", "sources", of=_with_keys("entry_point", "compile_options")),
    line=_with_keys("level_id", "task_id", "custom_code"),
    text=_TEXTS,
)
def test_published_kernels(solution: Any, line: Any, text: str) -> None:
    """Each has its sources, or the reason why there are none."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "kernels"
        lines = f"{json.dumps(line)}\n{text}\n"
        _write(folder, {"level_1/1.json": json.dumps(solution), "2.py": text, "3.jsonl": lines})
        found = read_published(folder)
    assert all((kernel.source is None) == bool(kernel.reason) for kernel in found)
    assert kernel_for("level1_1_a", found) is not None
