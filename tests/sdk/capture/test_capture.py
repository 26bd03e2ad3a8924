"""Programs are captured: what is recorded, which tasks are written, and what says why none is."""

from pathlib import Path

import pytest

from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import InvalidArgumentError, ProcessLostError
from kernel_foundry.sdk.capture.capture import Capture, CaptureProposal, capture_program
from kernel_foundry.sdk.task_file import read_task

_SCRIPT = '''\
"""A small transformer, as a user would write it."""

import sys
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

EPS = 2 * 1e-6


@dataclass
class Config:
    width: int = 32


def gated(a, b):
    return F.silu(a) * b


class RmsNorm(nn.Module):
    def __init__(self, config, eps=EPS):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(config.width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Gate(nn.Module):
    def forward(self, a, b, *, scale=1.0):
        return gated(a, b) * scale


class Act(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Mask(nn.Module):
    def forward(self, x, keep, rows, power=1):
        return torch.where(keep, x, 0.0)[:, rows] ** power


class Join(nn.Module):
    def forward(self, parts):
        return torch.cat(parts, -1)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm = RmsNorm(config)
        self.up = nn.Linear(config.width, 2 * config.width)
        self.gate = Gate()
        self.scaled = Gate()
        self.act = Act(lambda x: x.tanh())
        self.mask = Mask()
        self.join = Join()
        self.changed = nn.Linear(config.width, config.width)
        self.changed.weight = nn.Parameter(torch.ones(config.width, 3 * config.width))
        self.table = nn.Embedding(100, config.width)

    def forward(self, x):
        a, b = self.up(self.norm(x)).chunk(2, -1)
        x = self.act(self.gate(a, b)) + self.scaled(a, b, scale=2.0)
        x = self.mask(x, x > 0, torch.arange(x.shape[1]), 2)
        x = x + self.table(torch.arange(x.shape[1]))
        return self.changed(self.join([x, x, x]))


if __name__ == "__main__":
    model = torch.compile(Block(Config()).eval())
    with torch.no_grad():
        for rows in [64, 64, 48, 64] * 5:
            model(torch.randn(4, rows, 32))
    norm = RmsNorm(Config()).half()
    for _ in range(5):
        norm(torch.randn(4, 32).half())
    sys.exit(int(sys.argv[1]))
'''

_CONV = """\
import torch
from torch import nn


class ConvNormAct(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(ConvNormAct(3), ConvNormAct(8), nn.MaxPool2d(2))
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def get_inputs():
    return [torch.randn(2, 3, 16, 16)]


def get_init_inputs():
    return [10]
"""

_ODD = """
import copy
import os
import pickle
import sys
from enum import Enum
from math import sqrt

import helper
import torch
import torch.nn.functional as F
from helper import scaled
from torch import nn

SCALE = 2.0
TABLE = torch.ones(8)
NAMES = {"a": 1}
x_0 = 1.0
alias = scaled
os.environ["ONCE"] = "1"


class Mode(Enum):
    SUM = 1


class Values(nn.Module):
    def __init__(self, mode, limits, names, dtype, function, root, kind, inner, last=None):
        super(Values, self).__init__()
        self.inner = inner

    def forward(self, x, factor=1.0, dims=(0, 1)):
        return alias(self.inner(x)) * (factor + NAMES["a"] + x_0)


class Unwritten(nn.Module):
    def __init__(self, value):
        super().__init__()

    def forward(self, x):
        return x + 1


class Keyword(nn.Module):
    def __init__(self, *, bias):
        super().__init__()

    def forward(self, x):
        return x + 1


class ReadsTensor(nn.Module):
    def forward(self, x):
        return x + TABLE


class TwoMeanings(nn.Module):
    def forward(self, x):
        return scaled(x) * SCALE


class WholeModule(nn.Module):
    def forward(self, x):
        return helper.scaled(x)


class Once(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = os.environ.pop("ONCE")

    def forward(self, x):
        return x + 1


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return x * self.weight


class TakesDict(nn.Module):
    def forward(self, x):
        return x["x"] + 1


class NoTensor(nn.Module):
    def forward(self, n):
        return torch.ones(n)


class Raises(nn.Module):
    def forward(self, x):
        raise ValueError


class CallsRaising(nn.Module):
    def __init__(self):
        super().__init__()
        self.raises = Raises()

    def forward(self, x):
        try:
            return self.raises(x)
        except ValueError:
            return x + x_0


def local_class():
    class Local(ReadsTensor):
        pass

    return Local()


exec("class NoSource(nn.Module):\\n    def forward(self, x):\\n        return x + 1")
values = Values(
    Mode.SUM, (float("inf"), -1), [{"a": b"1"}], torch.float32, F.silu, sqrt, float, nn.Linear(8, 8)
)
x = torch.ones(1, 8)
calls = [(copy.deepcopy(values), x, 2.0), (Unwritten(object()), x), (ReadsTensor(), x)]
calls += [(TwoMeanings(), x), (WholeModule(), x), (Once(), x), (Mixed(), x.half()), (NoTensor(), 8)]
calls += [(TakesDict(), {"x": x}), (CallsRaising(), x), (local_class(), x), (NoSource(), x)]
calls += [(pickle.loads(pickle.dumps(nn.Sigmoid())), x), (nn.Tanh(), torch.ones(0, 8))]
calls += [(Keyword(bias=True), x), (nn.Sequential(*(nn.Identity() for _ in range(11))), x)]
relu = nn.ReLU()
calls += [(relu, torch.ones(rows, 8)) for rows in range(2, 20)]
with torch.no_grad():
    for _ in range(5):
        for module, *arguments in calls:
            module(*arguments)
        values(x, dims=(0, 2))
sys.exit("said at the end")
"""

_CPU = DeviceSpec(
    id="sycl:0",
    language=Language.SYCL,
    name="CPU",
    vendor="vendor",
    architecture="x86-64",
    driver_version="1",
    compute_units=2,
    sub_group_size=8,
    max_block=1024,
    shared_bytes=1 << 15,
    memory_bytes=1 << 33,
    cache_bytes=0,
    peaks=Peaks(
        bandwidth_bytes_per_second=1e12,
        cache_bandwidth_bytes_per_second=1e12,
        flops_per_second=1e12,
        launch_ns=1.0,
        read_bandwidth_bytes_per_second=1e12,
    ),
)


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> tuple[Capture, Path]:
    folder = tmp_path_factory.mktemp("script")
    program = folder / "program.py"
    program.write_text(_SCRIPT)
    out = folder / "out"
    out.mkdir()
    (out / "rms_norm.py").write_text("mine")
    (out / "mask.py").symlink_to(folder / "not_there")
    captured = capture_program(
        str(program), ["7"], devices=[_CPU], out=out, tasks=20, least_share=0
    )
    return captured, out


def _of_kind(capture: Capture, kind: str) -> list[CaptureProposal]:
    return [p for p in capture.proposals if p.module.kind == kind]


def test_a_script_ends_as_it_would_alone_and_its_modules_are_ranked(
    script: tuple[Capture, Path],
) -> None:
    captured, _ = script
    assert captured.exit_code == 7
    gains = [proposal.gain for proposal in captured.proposals]
    assert gains == sorted(gains, reverse=True)
    (norm,) = (
        p for p in _of_kind(captured, "RmsNorm") if p.module.calls[0].inputs[0].itemsize == 4
    )
    many, few = sorted(norm.module.calls, key=lambda calls: calls.inputs[0].shape, reverse=True)
    assert (many.count, many.inputs[0].shape, many.inputs[0].strides) == (
        15,
        (4, 64, 32),
        (2048, 32, 1),
    )
    assert (few.count, few.inputs[0].shape, few.inputs[0].dtype) == (5, (4, 48, 32), "float32")
    # Weights and input are read, and the output is written: at 1e12 bytes a second.
    elements = 15 * 4 * 64 * 32 + 5 * 4 * 48 * 32
    assert norm.bound_ns == pytest.approx((2 * elements + 20 * 32) * 4 * 1e9 / 1e12)


def test_tasks_hold_what_the_module_needs_and_a_workload_for_each_shape(
    script: tuple[Capture, Path],
) -> None:
    captured, out = script
    (norm,) = (
        p for p in _of_kind(captured, "RmsNorm") if p.module.calls[0].inputs[0].itemsize == 4
    )
    task = read_task(Path(norm.file))
    assert "class Config" in task.reference
    assert "EPS = 2 * 1e-06" in task.reference
    assert [w.name for w in task.workloads] == ["x_0=4,x_1=64,x_2=32", "x_0=4,x_1=48,x_2=32"]
    assert norm.module.sidecar.count("weight:") == 2
    weights = [w.weight for w in task.workloads]
    assert min(weights) > 0
    assert sum(weights) == pytest.approx(100, abs=0.2)  # per cent of the time in the module
    assert (out / "rms_norm.py").read_text() == "mine"
    assert not (out.parent / "not_there").exists()
    assert (out / "mask_2.py").is_file()
    (half,) = (p for p in _of_kind(captured, "RmsNorm") if p is not norm)
    assert "precision: fp16" in half.module.sidecar
    assert "weight:" not in half.module.sidecar  # of one shape
    (mask,) = _of_kind(captured, "Mask")
    assert "torch.rand((x_0, x_1, x_2)) < 0.5" in mask.module.reference
    (gate,) = (p for p in _of_kind(captured, "Gate") if p.file)
    assert any("not contiguous" in note for note in gate.module.notes)
    assert "torch.cat(parts, -1)" in _of_kind(captured, "Join")[0].module.reference


def test_where_no_task_can_be_written_the_reason_says_why(script: tuple[Capture, Path]) -> None:
    captured, _ = script
    reasons = {p.module.kind: p.module.reason for p in captured.proposals if not p.file}
    assert "lambda" in reasons["Act"]
    assert "scale by keyword only" in reasons["Gate"]
    assert "weights weight differ" in reasons["Linear"]


def test_a_model_is_called_with_its_files_inputs(tmp_path: Path) -> None:
    program = tmp_path / "conv.py"
    program.write_text(_CONV)
    captured = capture_program(
        f"{program}:Net", out=tmp_path / "out", tasks=1, calls=3, least_share=0, device="cpu"
    )
    files = [p.file for p in captured.proposals if p.file]
    assert len(files) == 1
    read_task(Path(files[0]))
    assert {p.module.kind for p in captured.proposals} >= {"Net", "ConvNormAct", "Conv2d"}
    assert all(sum(calls.count for calls in p.module.calls) in (3, 6) for p in captured.proposals)
    assert all(p.bound_ns is None and p.gain == p.share for p in captured.proposals)


def test_a_program_that_ends_its_process_is_no_capture(tmp_path: Path) -> None:
    program = tmp_path / "ends.py"
    program.write_text("import os\nos._exit(3)\n")
    with pytest.raises(ProcessLostError, match="exit code 3"):
        capture_program(str(program), out=tmp_path)


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no such file"):
        capture_program(str(tmp_path / "none.py"), out=tmp_path)
    program = tmp_path / "conv.py"
    program.write_text(_CONV)
    with pytest.raises(InvalidArgumentError, match="takes no arguments, got --tasks 3"):
        capture_program(f"{program}:Net", ["--tasks", "3"], out=tmp_path)
    with pytest.raises(InvalidArgumentError, match="File exists"):
        capture_program(f"{program}:Net", out=program)


def test_each_reason_why_there_is_no_task_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "helper.py").write_text("SCALE = 3.0\n\n\ndef scaled(x):\n    return x * SCALE\n")
    program = tmp_path / "odd.py"
    program.write_text(_ODD)
    captured = capture_program(str(program), out=tmp_path / "out", tasks=30, least_share=0)
    assert captured.exit_code == 1
    assert "said at the end" in capfd.readouterr().err
    reasons = {p.module.kind: p.module.reason for p in captured.proposals}
    for kind, part in {
        "Unwritten": "value is a object",
        "ReadsTensor": "TABLE of __main__ is a Tensor",
        "TwoMeanings": "mean different things by SCALE",
        "WholeModule": "helper is a module of the program as a whole",
        "Once": "does not run by itself: KeyError",
        "Mixed": "several formats: torch.float16, torch.float32",
        "TakesDict": "forward's x is a dict",
        "NoTensor": "takes no tensors",
        "Local": "defined inside a function",
        "NoSource": "the source of NoSource cannot be read",
        "Sigmoid": "not made by its constructor",
        "Tanh": "an input is empty",
        "Keyword": "takes bias by keyword",
    }.items():
        assert part in reasons[kind], kind
    assert reasons["CallsRaising"] == ""
    assert "Sequential" not in reasons
    values = next(p for p in _of_kind(captured, "Values") if p.module.calls[0].count == 5)
    (raising,) = _of_kind(captured, "CallsRaising")
    assert "x_0 = 1.0" in raising.module.reference
    assert (
        "torch.randn((1, x_1))" in raising.module.reference
        or "torch.rand((1, x_1))" in raising.module.reference
    )
    assert "Values = Model" in values.module.reference
    assert "torch.nn.functional.silu, sqrt, float, nn.Linear(8, 8)" in values.module.reference
    (relu,) = _of_kind(captured, "ReLU")
    assert relu.module.notes == ("2 shapes that take the least time are no workloads",)


def test_a_file_without_the_model_or_its_inputs_is_refused_in_a_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "conv.py"
    program.write_text(_CONV.replace("get_inputs", "other"))
    with pytest.raises(InvalidArgumentError, match="no get_inputs; a model's file has"):
        capture_program(f"{program}:Net", out=tmp_path / "out")
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.gpu
def test_on_a_gpu_times_are_those_of_its_events(tmp_path: Path) -> None:
    program = tmp_path / "conv.py"
    program.write_text(_CONV)
    captured = capture_program(f"{program}:Net", out=tmp_path / "out", calls=3, device="cuda:0")
    assert {p.module.device for p in captured.proposals} == {"cuda:0"}
    assert all(p.module.total_ns > 0 for p in captured.proposals)
