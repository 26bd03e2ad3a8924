"""First CUDA proposals on a real device: right, and as fast as is promised of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import kernel_foundry_native as native
from generator_svc.recipes.genome import plain
from kernel_foundry import plan as plans
from tests.cuda_on_host.host_run import BoundCandidate
from tests.recipes.cuda_candidates import bind, cuda_recipe
from tests.recipes.modules import MATMUL_MODULES, ROW_MODULES, LinearRelu
from tests.recipes.plain_run import launch_argument

pytestmark = pytest.mark.gpu

LIBRARY_SHARE = 0.8
"""Share of the float32 peak that a vendor's library reaches on large products."""

LANE_HERTZ = 1.7e9
"""Clock of a Hopper under float32 load, one multiply-add a lane."""

LANES = 128


@dataclass(frozen=True, kw_only=True)
class OpenCuda:
    module: Any
    device: Any
    compiler: Any

    def run(self, candidate: BoundCandidate) -> tuple[torch.Tensor, float]:
        """Return the output of `candidate` and the time of its launches in nanoseconds."""
        kernels = list(candidate.kernels)
        unit = candidate.unit(native.prelude("cuda"))
        built = self.compiler.compile(source=unit, options=[], kernels=kernels)
        program = self.device.load(code=built.code, kernels=kernels)
        sequence = self.module.LaunchSequence(self.device)
        for step in candidate.sequence.steps:
            assert isinstance(step, plans.Launch)
            sequence.launch(
                program=program,
                kernel=step.kernel,
                grid=step.grid,
                block=step.block,
                dimensions=step.dimensions,
                arguments=[launch_argument(self.module, a) for a in step.arguments],
                shared_bytes=step.shared_bytes,
            )
        buffers = [self.device.allocate(b.size_bytes) for b in candidate.sequence.buffers]
        names = [b.name for b in candidate.sequence.buffers]
        for name, buffer in zip(names, buffers, strict=True):
            if name in candidate.tensors:
                tensor = candidate.tensors[name].contiguous()
                self.device.copy(buffer.address, tensor.data_ptr(), buffer.size_bytes)
        sequence.bind(0, [buffer.address for buffer in buffers])
        best_ns = min(sum(sequence.profile(0)) for _ in range(20))
        out = torch.empty_like(candidate.tensors["out"])
        source = buffers[names.index("out")]
        self.device.copy(out.data_ptr(), source.address, source.size_bytes)
        self.device.synchronize()
        return out, best_ns


@pytest.fixture(scope="module")
def cuda() -> Iterator[OpenCuda]:
    module = native.device_kind("cuda")
    device = module.open_device(0)
    compiler = module.open_compiler(architecture=device.architecture)
    yield OpenCuda(module=module, device=device, compiler=compiler)
    compiler.release()
    device.release()


def _first(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> BoundCandidate:
    recipe = cuda_recipe(model, inputs)
    return bind(recipe, plain(recipe.family, recipe.genes), model, inputs)


def _check(cuda: OpenCuda, model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> float:
    with torch.no_grad():
        expected = model(*inputs)
    actual, time_ns = cuda.run(_first(model, inputs))
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-3, atol=1e-3)
    return time_ns


@pytest.mark.parametrize("columns", [77, 4096, 40000])
@pytest.mark.parametrize("name", ROW_MODULES)
def test_rows_are_right_on_the_device(cuda: OpenCuda, name: str, columns: int) -> None:
    torch.manual_seed(6)
    _check(cuda, ROW_MODULES[name](columns), (torch.randn(33, columns),))


@pytest.mark.parametrize("sizes", [(130, 77, 70), (512, 1024, 1024)])
@pytest.mark.parametrize("name", MATMUL_MODULES)
def test_products_are_right_on_the_device(
    cuda: OpenCuda, name: str, sizes: tuple[int, int, int]
) -> None:
    torch.manual_seed(7)
    rows, depth, cols = sizes
    inputs: tuple[torch.Tensor, ...] = (torch.randn(rows, depth),)
    if name == "linear_residual":
        inputs += (torch.randn(rows, cols),)
    _check(cuda, MATMUL_MODULES[name](depth, cols), inputs)


@pytest.mark.parametrize("size", [2048, 4096])
def test_first_product_reaches_half_of_what_a_library_does(cuda: OpenCuda, size: int) -> None:
    if cuda.device.architecture != "sm_90":
        pytest.skip(f"the figures are of sm_90, this is {cuda.device.architecture}")
    time_ns = _check(cuda, LinearRelu(size, size), (torch.randn(size, size),))
    rate = 2 * size**3 / time_ns * 1e9
    library = LIBRARY_SHARE * 2 * LANES * LANE_HERTZ * cuda.device.compute_units
    print(f"{size}: {rate / 1e12:.1f} TFLOP/s, a library about {library / 1e12:.1f}")
    assert rate > library / 2
