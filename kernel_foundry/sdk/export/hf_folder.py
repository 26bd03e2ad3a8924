"""A project of Hugging Face's kernel-builder: Python with object code, which it need not compile.

Format: `build.toml`, edition 5.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.sdk.export.function_file import check_gpu
from kernel_foundry.sdk.export.python_text import package_name, plain_text
from kernel_foundry.sdk.export.torch_file import NAMESPACE_LINE, judged_times
from kernel_foundry.sdk.export.winner import Winner, tensors_of

_ARCHITECTURE: Final = re.compile(r"sm_([0-9]{1,3})([0-9])[a-z]?")

_BUILD: Final = """\
[general]
name = "{package}"
version = 1
edition = 5
license = "other"  # yours to choose
backends = ["cuda"]

[torch-noarch]
cuda_capabilities = {capabilities}
"""
_FLAKE: Final = """\
{{
  description = "Flake for {package}";

  inputs.kernel-builder.url = "github:huggingface/kernels";

  outputs =
    {{ self, kernel-builder }}:
    kernel-builder.lib.genKernelFlakeOutputs {{
      inherit self;
      path = ./.;
    }};
}}
"""
_PACKAGE: Final = '''\
"""Kernels for {task}: a module in place of the reference's, and its operator."""

from .kernels import Module, fixed_weights, operator, relayout, reset_stats, stats, swap

__all__ = ["Module", "fixed_weights", "operator", "relayout", "reset_stats", "stats", "swap"]
'''
_NAMESPACE: Final = """\
from ._ops import add_op_namespace_prefix

NAMESPACE = add_op_namespace_prefix("").partition("::")[0]"""
_TEST: Final = '''\
"""The kernels give what their reference gives."""

import copy
import math

import pytest
import torch
from {name} import reset_stats, stats
from {name}.kernels import CAST, TF32, TRAINING, adopted, filled, flat, reference_at, results_of

CASES = {cases}
"""Sizes, with rtol and atol there, and the share of the elements that have to be within them."""
IS_SCALED = {is_scaled}
"""Whether the absolute tolerance is in units of the largest result."""
CHECK = {check!r}
"""A function of the reference that looks at results; empty: there is none."""
COMPARES = {compares}
"""Whether results are compared as well."""


@pytest.fixture
def rounding():
    """Products and convolutions rounded as where the kernels were judged."""
    switches = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [switch.allow_tf32 for switch in switches]
    for switch in switches:
        switch.allow_tf32 = TF32
    yield
    for switch, old in zip(switches, before):
        switch.allow_tf32 = old


@pytest.mark.kernels_ci
@pytest.mark.usefixtures("rounding")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize(("sizes", "rtol", "atol", "matched"), CASES, ids=str)
def test_the_kernels_are_right(sizes, rtol, atol, matched):
    source = reference_at(tuple(sorted(sizes.items())))
    arguments = source.get_init_inputs() if hasattr(source, "get_init_inputs") else []
    dtype = getattr(torch, CAST) if CAST else None
    reference = source.Model(*arguments).to("cuda", dtype).train(TRAINING)
    model = adopted(copy.deepcopy(reference))
    tensors, rest = flat(source.get_inputs())
    cast = [t.to("cuda", dtype if t.is_floating_point() else None) for t in tensors]
    inputs = filled(rest, cast)
    reset_stats()
    with torch.no_grad():
        found, expected = results_of(model(*inputs)), results_of(reference(*inputs))
    assert stats()["kernel"] == 1, stats()
    assert not CHECK or getattr(source, CHECK)(inputs, expected, found) in (None, True)
    for one, other in zip(found, expected) if COMPARES else ():
        scale = other.abs().max().item() if IS_SCALED and other.is_floating_point() else 1.0
        if matched < 1.0 and other.is_floating_point():
            right = torch.isclose(one, other, rtol=rtol, atol=atol * scale)
            assert bool((right | (one.isfinite() & other.isfinite())).all())
            allowed = math.floor((1.0 - matched) * right.numel() + 1e-6)
            assert right.numel() - int(right.sum()) <= allowed
            continue
        torch.testing.assert_close(one, other, rtol=rtol, atol=atol * scale)
'''
_BENCHMARK: Final = '''\
"""Times a call of the kernels, beside one of their reference: `kernels benchmark`."""

import copy

import torch
from kernels.benchmark import Benchmark


class Kernels(Benchmark):
    """A call of the module on inputs of each size that was timed."""

    seed = 0

    def _set_up(self, **sizes):
        file = self.kernel.kernels
        source = file.reference_at(tuple(sorted(sizes.items())))
        arguments = source.get_init_inputs() if hasattr(source, "get_init_inputs") else []
        dtype = getattr(torch, file.CAST) if file.CAST else None
        self.reference = source.Model(*arguments).to(self.device, dtype).train(file.TRAINING)
        self.model = file.adopted(copy.deepcopy(self.reference))
        tensors, rest = file.flat(source.get_inputs())
        cast = [t.to(self.device, dtype if t.is_floating_point() else None) for t in tensors]
        self.inputs = file.filled(rest, cast)

    @torch.no_grad()
    def _call(self, model):
        return self.kernel.kernels.results_of(model(*self.inputs))[0]
{workloads}'''
_WORKLOAD: Final = """
    def setup_{name}(self):
        self._set_up({sizes})

    def benchmark_{name}(self):
        self.out = self._call(self.model)

    def verify_{name}(self):
        return self._call(self.reference)
"""
_SOURCE: Final = """\
// What the object code in torch-ext/{name}/kernels.py was compiled from, to be read: nothing
// compiles this file. Its launch plan is the function {plan} of that file. Built with
{macros}

"""
_CARD: Final = """\
---
library_name: kernels
tags:
- kernels
---

# {package}

Kernels for {task} on NVIDIA GPUs of the architecture {architecture}, found by Kernel Foundry.

{figures}

```python
from kernels import get_kernel

kernels = get_kernel("YOU/{package}")
model = kernels.swap(model)  # replaces such modules wherever they are in the model
print(kernels.stats())  # how often kernels ran, how often the reference, and why
```

Inputs: {inputs}.

`torch-ext/{name}/kernels.py` holds the kernels as object code, the source of the reference, which
runs wherever no kernel was judged, and the signed record of the verdict for `kfoundry verify`.
`source/` has the CUDA C++ that the object code was compiled from.

The package is `torch-noarch`: Python alone, which loads the object code by the CUDA driver, for any
release of torch. So there is nothing to compile, and no `torch_binding.cpp`: the operator's schema
and its shapes are registered in Python, by `torch.library.custom_op`.
"""


def hf_folder(
    text: str, winners: Sequence[Winner], /, *, module: str, problem: str
) -> dict[str, str]:
    """Return the files of the project.

    Args:
        text: Of the Python file, which is a module of the package.
        winners: Of one task.
        module: Name of the package.
        problem: Not used.

    Raises:
        InvalidArgumentError: the kernels are for the CPU.
    """
    del problem
    check_gpu(winners, "this target")
    first = winners[0]
    task = plain_text(first.record.task.name)
    name = module.lower()
    package = package_name(module)
    known = {workload.workload for workload in first.in_python(first.record.task.reference)}
    cases, timed = [], []
    for workload in first.built:
        if workload.workload not in known:
            continue
        if not workload.held_out:
            timed.append(first.sizes(workload))
        held = first.record.task.tolerance_of(workload.workload, first.admission.tolerance)
        cases.append((first.sizes(workload), held.rtol, held.atol, held.matched))
    capabilities = _capabilities(first.admission.device.architecture)  # all are of the same
    inputs = tensors_of(first.workloads[0], TensorRole.INPUT)
    assert text.count(NAMESPACE_LINE) == 1, "it is one line of each file"
    return {
        "build.toml": _BUILD.format(package=package, capabilities=capabilities),
        "flake.nix": _FLAKE.format(package=package),
        **{
            f"source/{name}{f'_{i}' if i else ''}.cu": _source(winner, name, f"_plan_{i}")
            for i, winner in enumerate(winners)
        },
        f"benchmarks/benchmark_{name}.py": _BENCHMARK.format(
            workloads="".join(map(_workload, timed))
        ),
        f"torch-ext/{name}/__init__.py": _PACKAGE.format(task=task),
        f"torch-ext/{name}/kernels.py": text.replace(NAMESPACE_LINE, _NAMESPACE),
        f"tests/test_{name}.py": _TEST.format(
            name=name,
            cases=repr(cases),
            is_scaled=first.record.task.tolerance is None,
            check=first.record.task.check,
            compares=first.record.task.compare,
        ),
        "CARD.md": _CARD.format(
            package=package,
            name=name,
            task=task,
            architecture=first.admission.device.architecture,
            figures=judged_times(winners),
            inputs="; ".join(f"`{t.name}` {t.dtype} of {len(t.shape)} dimensions" for t in inputs),
        ),
    }


def _source(winner: Winner, name: str, plan: str) -> str:
    macros = [f"//   {program.macros}" for program in winner.programs(winner.built)]
    head = _SOURCE.format(name=name, plan=plan, macros="\n".join(macros))
    return f"{head}{winner.record.source.device_code}"


def _workload(sizes: Mapping[str, int]) -> str:
    name = "_".join(f"{size}_{value}" for size, value in sizes.items()) or "usual"
    given = ", ".join(f"{size}={value}" for size, value in sizes.items())
    return _WORKLOAD.format(name=name, sizes=given)


def _capabilities(architecture: str) -> str:
    """Return the compute capability as a list of TOML: "sm_90" is 9.0; empty for other words."""
    found = _ARCHITECTURE.fullmatch(architecture)
    return f'["{found[1]}.{found[2]}"]' if found else "[]"
