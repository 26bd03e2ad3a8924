"""Solutions for FlashInfer Trace and SOL-ExecBench, as far as they go without a GPU."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_foundry.domain.admission import WorkloadAdmission
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import is_program, read_records
from kernel_foundry.sdk.export.destination import check_destination
from kernel_foundry.sdk.export.targets import TARGETS
from kernel_foundry.sdk.export.winner import Winner
from tests.export.conftest import imported
from tests.export.solution_schema import check_flashinfer, check_sol

pytestmark = [pytest.mark.sycl, pytest.mark.slow]


def solution(winner: Winner, target: str) -> Any:
    form = TARGETS[target]
    text = form.source([winner], "fast_solution")
    return json.loads(form.packed(text, winner, module="fast_solution", problem="product_d64"))


def on_gpu(winner: Winner, name: str) -> Winner:
    device = replace(winner.admission.device, name=name)
    return replace(winner, admission=replace(winner.admission, device=device))


def with_dtype(winner: Winner, dtype: str) -> Winner:
    def changed(workload: WorkloadAdmission) -> WorkloadAdmission:
        tensors = tuple(replace(tensor, dtype=dtype) for tensor in workload.tensors)
        return replace(workload, tensors=tensors)

    workloads = tuple(map(changed, winner.admission.workloads))
    return replace(winner, admission=replace(winner.admission, workloads=workloads))


def test_a_solution_of_flashinfer_trace_has_its_schema(plain_gpu_winner: Winner) -> None:
    found = solution(plain_gpu_winner, "flashinfer")
    check_flashinfer(found)
    assert found["definition"] == "product_d64"
    assert found["spec"]["target_hardware"] == ["NVIDIA_H100"]


@pytest.mark.parametrize(("gpu", "hardware"), [("NVIDIA B200", "B200"), ("NVIDIA H100", "LOCAL")])
def test_a_solution_of_sol_execbench_has_its_schema(
    plain_gpu_winner: Winner, gpu: str, hardware: str
) -> None:
    found = solution(on_gpu(plain_gpu_winner, gpu), "sol")
    check_sol(found)
    assert found["spec"]["target_hardware"] == [hardware]


@pytest.mark.parametrize("target", ["flashinfer", "sol"])
def test_the_evidence_in_its_source_is_read(
    plain_gpu_winner: Winner, tmp_path: Path, target: str
) -> None:
    path = tmp_path / "solution.json"
    path.write_text(json.dumps(solution(plain_gpu_winner, target)))
    assert read_records(path) == (plain_gpu_winner.record,)
    assert is_program(path)
    check_destination(path, [plain_gpu_winner.record.task], is_folder=False)


@pytest.mark.parametrize(
    "sources",
    [[], "x", [{}], [{"path": "run.cu", "content": "x"}], [{"path": "run.py", "content": 1}],
     [{"path": "run.py", "content": "x = 1"}], [{"path": "run.py", "content": "x"}] * 2],
)  # fmt: skip
def test_sources_without_evidence_are_refused(tmp_path: Path, sources: Any) -> None:
    path = tmp_path / "solution.json"
    path.write_text(json.dumps({"name": "mine", "sources": sources}))
    with pytest.raises(InvalidArgumentError, match="neither an exported file nor a record"):
        read_records(path)


@pytest.mark.parametrize("target", ["flashinfer", "sol"])
def test_the_entry_point_writes_its_outputs(
    plain_gpu_winner: Winner, tmp_path: Path, target: str
) -> None:
    found = solution(plain_gpu_winner, target)
    file, function = found["spec"]["entry_point"].split("::")
    (source,) = found["sources"]
    assert source["path"] == file
    entry = getattr(imported(source["content"], tmp_path, Path(file).stem), function)
    x, y, out = torch.randn(8, 64), torch.randn(8, 64), torch.empty(8, 64)
    assert entry(x, y, out) is None
    torch.testing.assert_close(out, x * y + 1.0)


@pytest.mark.parametrize(("target", "place"), [("flashinfer", "FlashInfer"), ("sol", "SOL")])
def test_what_the_formats_have_not_is_refused(
    plain_winner: Winner, plain_gpu_winner: Winner, target: str, place: str
) -> None:
    source = TARGETS[target].source
    with pytest.raises(InvalidArgumentError, match=f"{place}.* runs on NVIDIA GPUs"):
        source([plain_winner], "solution")
    with pytest.raises(InvalidArgumentError, match=f"{place}.* has no complex64, the type of x"):
        source([with_dtype(plain_gpu_winner, "complex64")], "solution")


def test_float64_is_a_type_of_sol_execbench_alone(plain_gpu_winner: Winner) -> None:
    winner = with_dtype(plain_gpu_winner, "float64")
    assert TARGETS["sol"].source([winner], "solution")
    with pytest.raises(InvalidArgumentError, match="has no float64"):
        TARGETS["flashinfer"].source([winner], "solution")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("author",), ""),
        (("spec", "entry_point"), "fast_solution.py::absent"),
        (("spec", "entry_point"), "other.py::run"),
        (("spec", "target_hardware"), []),
        (("sources",), []),
    ],
)
@pytest.mark.parametrize(
    ("target", "check"), [("flashinfer", check_flashinfer), ("sol", check_sol)]
)
def test_the_schema_notices_what_is_wrong(
    plain_gpu_winner: Winner, target: str, check: Any, path: tuple[str, ...], value: Any
) -> None:
    found = solution(plain_gpu_winner, target)
    owner = found
    for name in path[:-1]:
        owner = owner[name]
    owner[path[-1]] = value
    with pytest.raises((AssertionError, ValueError)):
        check(found)
