"""Admissions of small modules as recipes see them: exported by the judge's own code."""

import inspect
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import nn

from evaluator_svc.judge.graph.graph import export_graph
from kernel_foundry.domain.admission import (
    Admission,
    NamedTensor,
    TensorRole,
)
from kernel_foundry.domain.task import Tolerance
from tests.domain_values import CPU, H200, workload_admission

DEVICE = replace(CPU, sub_group_size=32, max_block=4096, shared_bytes=1 << 17)

CUDA_DEVICE = H200


def admission_of(model: nn.Module, inputs: Sequence[torch.Tensor]) -> Admission:
    """Return what recipes need of an admission of `model` on `inputs`."""
    tensors = tensors_of(model, inputs)
    workload = workload_admission(
        tensors=tuple(tensors), graph=export_graph(model, inputs, tensors)
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
