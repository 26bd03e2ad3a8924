"""Exported files for NVIDIA GPUs: what needs none, and, where there is one, all of it."""

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.exported_form.start import try_exported_form
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.exported_form import FormRequest
from kernel_foundry.sdk.export.call_sizes import CallSizes
from kernel_foundry.sdk.export.cpp_folder import cpp_folder
from kernel_foundry.sdk.export.export import form_workloads
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner
from tests.export.conftest import CUDA_CANDIDATE, built_for_gpu, imported

ARGUMENTS = (48, 40, 2.0)


@pytest.mark.slow
def test_a_file_for_a_gpu_is_right_without_one(
    winner: Winner, local_evaluator: Callable[[str], LocalEvaluator], tmp_path: Path
) -> None:
    text = torch_file([built_for_gpu(winner, CUDA_CANDIDATE, local_evaluator(""))], "fast_cuda")
    fast = imported(text, tmp_path, "fast_cuda")
    limits = fast.Limits(132, 32, 232448, 1024)
    (specialisation,) = fast.SPECIALISATIONS
    kind = (("rows", 64),)
    sequence, macros = fast.sequence_of(specialisation, kind, ((5, 48),), limits)
    assert macros == {"WG": 32, "INNER": 48, "OUTER": 40}
    (product,) = sequence.steps
    assert (product.grid, product.block, product.shared_bytes) == ((5, 1, 1), (32, 1, 1), 192)
    model = fast.Module(*ARGUMENTS)
    x = torch.randn(8, 48)
    with torch.no_grad():
        torch.testing.assert_close(model(x), model.linear(x) * 2.0)
    assert fast.stats()["last_reason"] == "x is on cpu; kernels run on cuda"
    with pytest.raises(fast.NoKernelError, match=r"no CUDA driver: .*absent\.so"):
        fast.Driver((str(tmp_path / "absent.so"),))


@pytest.fixture(scope="module")
def fast(gpu_winner: Winner, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = tmp_path_factory.mktemp("export_gpu")
    return imported(torch_file([gpu_winner], "fast_gpu"), folder, "fast_gpu")


@pytest.mark.gpu
@pytest.mark.slow
def test_kernels_run_on_the_current_stream_of_a_gpu(fast: ModuleType) -> None:
    model = fast.Module(*ARGUMENTS).cuda()
    fast.reset_stats()
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.no_grad(), torch.cuda.stream(stream):
            x = torch.randn(17, 48, device="cuda")
            torch.testing.assert_close(model(x), model.linear(x) * 2.0, rtol=1e-4, atol=1e-4)
            model.linear.weight.mul_(2.0)
            torch.testing.assert_close(model(x), model.linear(x) * 2.0, rtol=1e-4, atol=1e-4)
        torch.cuda.synchronize()
    assert fast.stats()["kernel"] == 4, fast.stats()


@pytest.mark.gpu
@pytest.mark.slow
def test_a_captured_graph_stays_right_when_weights_change(fast: ModuleType) -> None:
    model = fast.Module(*ARGUMENTS).cuda()
    x = torch.randn(17, 48, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        model(x)
        with torch.cuda.graph(graph):
            y = model(x)
        model.linear.weight.mul_(3.0)
        graph.replay()
        torch.testing.assert_close(y, model.linear(x) * 2.0, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.slow
def test_gradients_on_a_gpu_are_the_references(fast: ModuleType) -> None:
    model = fast.Module(*ARGUMENTS).cuda()
    x = torch.randn(17, 48, device="cuda", requires_grad=True)
    asked = [x, model.linear.weight, model.linear.bias]
    with torch.cuda.stream(torch.cuda.Stream()):
        found = torch.autograd.grad(model(x).square().sum(), asked)
    torch.cuda.synchronize()
    wanted = torch.autograd.grad((model.linear(x) * 2.0).square().sum(), asked)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


# `opcheck` runs backward: autograd's thread of the device calls cuBLAS before it has a context, and
# torch warns that it takes the primary one, which is right.
@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS, but there was no:UserWarning")
@pytest.mark.gpu
@pytest.mark.slow
def test_the_operator_is_a_good_citizen_on_a_gpu(fast: ModuleType) -> None:
    model = fast.Module(*ARGUMENTS).cuda()
    x = torch.randn(8, 48, device="cuda", requires_grad=True)
    torch.library.opcheck(fast.operator, (x, *fast.weights_of(model), model._kf.kind))
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model.linear(x) * 2.0, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.slow
def test_the_cpp_library_is_right_on_a_gpu(gpu_winner: Winner, tmp_path: Path) -> None:
    for path, text in cpp_folder("", [gpu_winner], module="fast", problem="").items():
        Path(tmp_path, path).write_text(text, encoding="utf-8")
    command = [
        "c++",
        "-std=c++17",
        "-O1",
        "-shared",
        "-fPIC",
        "fast.cpp",
        "-o",
        "libfast.so",
        "-ldl",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "libfast.so"))
    library.fast_error.restype = ctypes.c_char_p

    def call(name: str, *arguments: object) -> None:
        assert library[f"fast_{name}"](*arguments) == 0, library.fast_error()

    linear = torch.nn.Linear(48, 40).cuda()
    x, out = torch.randn(17, 48, device="cuda"), torch.empty(17, 40, device="cuda")
    values = {"x": x, "linear_weight": linear.weight, "linear_bias": linear.bias, "out": out}
    assert CallSizes([gpu_winner]).names == ("rows",)
    tensors = gpu_winner.workloads[0].tensors
    slots = (ctypes.c_uint64 * 5)(*(values[t.name].data_ptr() for t in tensors), 17)
    kernels = ctypes.c_void_p()
    call("open", 0, ctypes.byref(kernels))
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        call("prepare", kernels, slots, stream)
        call("launch", kernels, slots, stream)
        torch.testing.assert_close(out, linear(x) * 2.0, rtol=1e-4, atol=1e-4)
        with torch.cuda.graph(graph):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            call("launch", kernels, slots, stream)
        x.mul_(3.0)
        graph.replay()
        torch.testing.assert_close(out, linear(x) * 2.0, rtol=1e-4, atol=1e-4)
    torch.cuda.synchronize()
    library.fast_close(kernels)


@pytest.mark.gpu
@pytest.mark.slow
def test_a_file_for_a_gpu_is_tried_before_it_is_given(gpu_winner: Winner) -> None:
    request = FormRequest(
        text=torch_file([gpu_winner], "fast_gpu"),
        device=gpu_winner.admission.device.id,
        is_scaled=True,
        workloads=form_workloads([gpu_winner]),
    )
    report = try_exported_form(request, EvaluatorSettings())
    assert [result.failure for result in report.results] == ["", ""]
    assert report.results[0].kernels_ns is not None


@pytest.mark.gpu
@pytest.mark.slow
def test_a_graph_of_fixed_weights_reads_them_as_they_were_laid_out(fast: ModuleType) -> None:
    model = fast.Module(*ARGUMENTS).cuda()
    x = torch.randn(17, 48, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        expected = model(x).clone()
        with fast.fixed_weights(), torch.cuda.graph(graph):
            y = model(x)
        graph.replay()
        torch.testing.assert_close(y, expected)
        model.linear.weight.zero_()  # a promise that is broken shows that nothing is laid out
        y.zero_()
        graph.replay()
        torch.testing.assert_close(y, expected)
        torch.testing.assert_close(model(x), model.linear(x) * 2.0, rtol=1e-4, atol=1e-4)
