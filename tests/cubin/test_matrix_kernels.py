"""The kernels that rates of matrix units are measured with: built here, run where a GPU is."""

from dataclasses import replace

import pytest

from evaluator_svc.peaks.matrix_kernels import (
    ELEMENTS,
    MATRIX_KERNELS,
    ROUNDS,
    matrix_formats,
    step_flops,
)
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.parse import parse
from tests.behaviour import nvrtc
from tests.judge.judge_tasks import DEVICE


@pytest.mark.skipif(bool(nvrtc.absence()), reason=nvrtc.absence() or "NVRTC is there")
def test_on_hopper_every_format_runs_on_warpgroup_products_without_a_spill() -> None:
    built = nvrtc.build(MATRIX_KERNELS.device_code)
    ptx = built.ptx.decode()

    assert built.cubin, built.log
    for types in ("k16.f32.f16.f16", "k16.f32.bf16.bf16", "k8.f32.tf32.tf32", "k32.s32.s8.s8"):
        assert f"wgmma.mma_async.sync.aligned.m64n256{types} " in ptx
    assert "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 " in ptx
    assert built.log.count("0 bytes spill stores, 0 bytes spill loads") == len(ELEMENTS)


def test_the_plan_makes_the_rounds_that_rates_are_counted_with() -> None:
    assert f"ROUNDS = {ROUNDS}" in MATRIX_KERNELS.plan
    parse(MATRIX_KERNELS.plan)


def test_a_step_is_two_operations_for_each_multiply_add() -> None:
    assert step_flops("bf16") == 2 * 64 * 256 * 16
    assert step_flops("fp8_e4m3") == 2 * step_flops("bf16") == 4 * step_flops("tf32")


@pytest.mark.parametrize(
    ("architecture", "formats"),
    [
        ("sm_75", set()),
        ("sm_80", {"fp16", "bf16", "tf32", "int8"}),
        ("sm_90", {"fp16", "bf16", "tf32", "int8", "fp8_e4m3"}),
    ],
)
def test_formats_are_those_of_the_architecture(architecture: str, formats: set[str]) -> None:
    device = replace(DEVICE, language=Language.CUDA, architecture=architecture)

    assert set(matrix_formats(device)) == formats
    assert matrix_formats(replace(device, language=Language.SYCL)) == ()
