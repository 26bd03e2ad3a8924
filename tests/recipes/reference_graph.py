"""Admissions of small modules as recipes see them: exported by the judge's own code."""

import inspect
from collections.abc import Sequence

import torch
from torch import nn

from evaluator_svc.judge.reference.graph import export_graph
from kernel_foundry.domain.admission import (
    Admission,
    NamedTensor,
    TensorRole,
    WorkloadAdmission,
)
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Tolerance

DEVICE = DeviceSpec(
    id="sycl:0",
    language=Language.SYCL,
    name="any",
    vendor="any",
    architecture="any",
    driver_version="1",
    compute_units=2,
    sub_group_size=32,
    max_block=4096,
    shared_bytes=1 << 17,
    memory_bytes=8 << 30,
    cache_bytes=32 << 20,
)

CUDA_DEVICE = DeviceSpec(
    id="cuda:0",
    language=Language.CUDA,
    name="any",
    vendor="NVIDIA",
    architecture="sm_90",
    driver_version="1",
    compute_units=132,
    sub_group_size=32,
    max_block=1024,
    shared_bytes=232448,
    memory_bytes=140 << 30,
    cache_bytes=60 << 20,
)


def admission_of(model: nn.Module, inputs: Sequence[torch.Tensor]) -> Admission:
    """Return what recipes need of an admission of `model` on `inputs`."""
    tensors = tensors_of(model, inputs)
    workload = WorkloadAdmission(
        workload="default",
        held_out=False,
        tensors=tuple(tensors),
        scalars=(),
        graph=export_graph(model, inputs, tensors),
        flops=0,
        minimal_bytes=0,
        traffic_bound_ns=0.0,
        arithmetic_estimate_ns=0.0,
        arithmetic_unit="FMA",
        baselines=(),
    )
    return Admission(
        task="t", device=DEVICE, workloads=(workload,), tolerance=Tolerance(rtol=1e-4, atol=1e-4)
    )


def tensors_of(model: nn.Module, inputs: Sequence[torch.Tensor]) -> list[NamedTensor]:
    """Return inputs, parameters and the only output of `model` as a plan may name them."""
    names = list(inspect.signature(model.forward).parameters)
    tensors = [
        _named(name, TensorRole.INPUT, value) for name, value in zip(names, inputs, strict=True)
    ]
    tensors += [
        _named(path.replace(".", "_"), TensorRole.PARAMETER, value, path)
        for path, value in model.named_parameters()
    ]
    with torch.no_grad():
        output = model(*inputs)
    return [*tensors, _named("out", TensorRole.OUTPUT, output)]


def _named(name: str, role: TensorRole, value: torch.Tensor, path: str = "") -> NamedTensor:
    dtype = str(value.dtype).removeprefix("torch.")
    return NamedTensor(name=name, role=role, dtype=dtype, shape=tuple(value.shape), path=path)
