"""The programs in `examples/export/`: each runs with an export of softmax, as far as a CPU goes."""

import asyncio
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.export_matrix.folder_run import write_folder
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.judge.describe import describe_task
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.attestation import Attestation
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Size, Task, Tolerance, Workload
from kernel_foundry.evidence.record import record_of
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.export.targets import TARGETS
from kernel_foundry.sdk.export.winner import Winner
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.domain_values import workload_admission
from tests.export.conftest import built_for_gpu

pytestmark = [pytest.mark.sycl, pytest.mark.slow]

TASKS = Path("examples").absolute()
PROGRAMS = TASKS / "export"
SIZES = ((64, 4096), (3, 1001))


@pytest.fixture(scope="module")
def softmax(local_evaluator: Callable[[str], LocalEvaluator]) -> Winner:
    """The example's candidate, built but not judged: what is tried here is how it is called."""
    workloads = tuple(
        Workload(
            name=f"batch={batch},dim={dim}",
            sizes=(Size(name="batch", value=batch), Size(name="dim", value=dim)),
            held_out=batch == 3,
        )
        for batch, dim in SIZES
    )
    task = replace(read_task(TASKS / "softmax.py"), workloads=workloads)
    return asyncio.run(built(local_evaluator("sycl"), task))


async def built(evaluator: LocalEvaluator, task: Task) -> Winner:
    """A winner of which only the object code and the shapes are real."""
    (device,) = (await evaluator.capabilities()).devices
    source = split((TASKS / "softmax.sycl.md").read_text())
    request = EvaluationRequest(task=task, device=device.id, source=source)
    made = await evaluator.evaluate(replace(request, build_only=True, with_objects=True))
    assert made.compile is not None, made.findings
    evaluation = await FakeEvaluator(device=device).evaluate(request)
    signed = Attestation(
        seeds=(), seeds_given=False, signed_unix_s=0.0, digest="", public_key="", signature=""
    )
    evaluation = replace(evaluation, configuration=made.configuration, attestation=signed)
    tables = zip(task.workloads, describe_task(task).workloads, strict=True)
    admitted = tuple(
        workload_admission(
            workload=w.name, held_out=w.held_out, tensors=table.tensors, scalars=table.scalars
        )
        for w, table in tables
    )
    return Winner(
        record=record_of(task, source, evaluation),
        admission=Admission(
            task=task.digest,
            device=device,
            workloads=admitted,
            tolerance=Tolerance(rtol=1e-4, atol=1e-5),
        ),
        objects=made.compile.objects,
    )


@pytest.fixture(scope="module")
def gpu_softmax(softmax: Winner, local_evaluator: Callable[[str], LocalEvaluator]) -> Winner:
    return built_for_gpu(softmax, (TASKS / "softmax.cuda.md").read_text(), local_evaluator(""))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where exports are, and programs run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = {*sys.modules}
    yield tmp_path
    for name in {*sys.modules} - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == tmp_path:
            del sys.modules[name]


def exported(winner: Winner, target: str, file: str) -> None:
    form, module = TARGETS[target], Path(file).stem
    text = form.packed(form.source([winner], module), winner, module=module, problem="softmax_v2")
    Path(file).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("target", "file", "said"),
    [
        ("torch", "fast_softmax.py", "'kernel': 2, 'reference': 0"),
        ("kernelbench", "level_1_problem_23_sample_0_kernel.py", "x is torch.float64"),
    ],
)
def test_a_program_calls_kernels_on_a_cpu(
    softmax: Winner,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    target: str,
    file: str,
    said: str,
) -> None:
    exported(softmax, target, file)
    runpy.run_path(str(PROGRAMS / f"use_{target}.py"))
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "file", "program", "said"),
    [
        ("popcorn", "submission.py", "use_popcorn.py", "x is on cpu; kernels run on cuda"),
        ("flashinfer", "solution.json", "use_solution.py", "solves softmax_v2"),
        ("sol", "solution.json", "use_solution.py", "solves softmax_v2"),
    ],
)
def test_a_program_of_a_gpu_runs_the_reference_elsewhere(
    gpu_softmax: Winner,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    file: str,
    program: str,
    said: str,
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    exported(gpu_softmax, target, file)
    runpy.run_path(str(PROGRAMS / program))
    assert said in capsys.readouterr().out


def test_the_cpp_program_is_built_and_meets_a_driver(
    gpu_softmax: Winner, fake_driver: Path, folder: Path
) -> None:
    make = TARGETS["cpp"].folder
    assert make is not None
    files = make("", [gpu_softmax], module="fast_softmax", problem="")
    write_folder({f"fast_softmax/{name}": text for name, text in files.items()}, folder)
    write_folder({path.name: path.read_text() for path in (PROGRAMS / "cpp").iterdir()}, folder)
    driver = folder / "libcuda.so.1"
    driver.symlink_to(fake_driver)
    environment = os.environ | {"LIBRARY_PATH": str(folder), "LD_LIBRARY_PATH": str(folder)}
    environment["CXXFLAGS"] = "-O0 -Wall -Wextra -Werror"
    for command in (["cmake", "-B", "build"], ["cmake", "--build", "build"]):
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    ended = subprocess.run(
        ["build/use_cpp"], env=environment, capture_output=True, text=True, check=False
    )
    # That driver has no such kernel: its launches do nothing.
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("the first of 4096 equal shares is ")
