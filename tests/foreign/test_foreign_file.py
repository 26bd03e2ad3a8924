"""Files with foreign kernels are told apart by what they define, and never run."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluator_svc.requests.request_limits import check_foreign
from evaluator_svc.service import evaluator_service
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.foreign import ForeignFile, ForeignForm, ForeignRequest, ForeignSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task
from kernel_foundry.domain.verdict_limits import check_verdict
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.server import running
from kernel_foundry.sdk.foreign_file import read_foreign
from kernel_foundry.testing.evaluator import FakeEvaluator

_TASK = Task(name="t", reference="class Model: ...\ndef get_inputs(): ...")


def _read(folder: Path, name: str, text: str) -> ForeignSource:
    path = folder / name
    path.write_text(text)
    return read_foreign(path)


def _solution(**spec: Any) -> str:
    spec = {"language": "triton", "entry_point": "main.py::run", **spec}
    return json.dumps({"spec": spec, "sources": [{"path": "main.py", "content": "raise 1"}]})


@pytest.mark.parametrize(
    ("name", "text", "form", "entry"),
    [
        ("k.py", "class ModelNew: ...\nraise 1", ForeignForm.MODEL_NEW, "ModelNew"),
        ("k.py", "ModelNew = wrap(x)", ForeignForm.MODEL_NEW, "ModelNew"),
        ("k.py", "def custom_kernel(data): ...", ForeignForm.CUSTOM_KERNEL, "custom_kernel"),
        ("s.json", _solution(), ForeignForm.FUNCTION_INTO_OUTPUTS, "run"),
        ("s.json", _solution(destination_passing_style=False), ForeignForm.FUNCTION, "run"),
        (
            "s.json",
            _solution(languages=["cuda_cpp"], entry_point="main.cu::run"),
            ForeignForm.FUNCTION_INTO_OUTPUTS,
            "run",
        ),
    ],
)
def test_the_form_follows_from_the_file(
    tmp_path: Path, name: str, text: str, form: ForeignForm, entry: str
) -> None:
    """Its code has no say: it would raise."""
    source = _read(tmp_path, name, text)
    assert (source.form, source.entry_name) == (form, entry)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("k.py", "def kernel(x): ...", "neither a class ModelNew nor"),
        ("k.py", "class ModelNew(", "no Python"),
        ("s.json", "{", "no JSON"),
        ("s.json", "[]", "spec: expected an object"),
        ("s.json", '{"spec": {}, "sources": []}', "sources: expected 1 to 64 files"),
        ("s.json", _solution(entry_point="main.py"), "expected FILE::FUNCTION"),
        ("s.json", _solution(language="cuda", entry_point="a.cu::run"), "binding 'tvm-ffi'"),
    ],
)
def test_other_files_are_refused_with_the_reason(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=problem):
        _read(tmp_path, name, text)


@pytest.mark.parametrize("path", ["/etc/x.py", "../x.py", "a/../x.py", ".x.py", "a//x.py", ""])
def test_paths_stay_below_the_folder(path: str) -> None:
    source = ForeignSource(
        form=ForeignForm.MODEL_NEW,
        entry_file=path,
        entry_name="ModelNew",
        files=(ForeignFile(path=path, text=""),),
    )
    with pytest.raises(InvalidArgumentError):
        check_foreign(ForeignRequest(task=_TASK, device="", source=source))


async def test_a_verdict_from_afar_is_the_same_and_no_archive_takes_it(tmp_path: Path) -> None:
    """It can be material of a run, and never an elite."""
    source = _read(tmp_path, "k.py", "class ModelNew: ...")
    request = ForeignRequest(task=_TASK, device="", source=source)
    listen = f"unix:{tmp_path}/evaluator.sock"
    fake = FakeEvaluator()
    async with running([evaluator_service(fake)], listen):
        remote = RemoteEvaluator(listen)
        verdict = await remote.evaluate_foreign(request)
        await remote.close()
    assert verdict == await fake.evaluate_foreign(request)
    assert (verdict.trust, verdict.candidate) == (Trust.FOREIGN, source.digest)
    candidate = Candidate(source=KernelSource(language=Language.SYCL, device_code="", plan=""))
    with pytest.raises(InvalidArgumentError, match="material of a run and no candidate"):
        check_verdict(candidate, verdict)
