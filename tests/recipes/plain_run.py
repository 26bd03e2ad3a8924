"""Admits small modules in several sizes, and runs what the plain recipe writes."""

import inspect
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn

import kernel_foundry_native as native
from evaluator_svc.judge.graph.graph import export_graph
from kernel_foundry import plan as plans
from kernel_foundry.domain.admission import (
    Admission,
    GraphNode,
    NamedTensor,
    TensorRole,
)
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.plan.from_admission import device_limits, name_table
from tests.domain_values import workload_admission
from tests.recipes.plain_modules import Case

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Workload:
    model: nn.Module
    inputs: tuple[torch.Tensor, ...]
    outputs: tuple[torch.Tensor, ...]
    """What PyTorch computes."""

    @property
    def named(self) -> list[tuple[NamedTensor, torch.Tensor]]:
        """The name table with its tensors; outputs are not filled."""
        names = inspect.signature(self.model.forward).parameters
        single = len(self.outputs) == 1
        found = [
            *((name, TensorRole.INPUT, value, "")
              for name, value in zip(names, self.inputs, strict=True)),
            *((p.replace(".", "_"), TensorRole.PARAMETER, v.detach(), p)
              for p, v in self.model.named_parameters()),
            *((p.replace(".", "_"), TensorRole.BUFFER, v.clone(), p)
              for p, v in self.model.named_buffers()),
            *(("out" if single else f"out{n}", TensorRole.OUTPUT, torch.zeros_like(v), "")
              for n, v in enumerate(self.outputs)),
        ]  # fmt: skip
        return [
            (
                NamedTensor(
                    name=name,
                    role=role,
                    dtype=str(value.dtype).removeprefix("torch."),
                    shape=tuple(value.shape),
                    path=path,
                ),
                value.contiguous(),
            )
            for name, role, value, path in found
        ]

    @cached_property
    def graph(self) -> tuple[GraphNode, ...]:
        """The operator graph, the same for all devices: exporting it takes longer than writing."""
        return export_graph(self.model, self.inputs, [tensor for tensor, _ in self.named])


def workloads_of(case: Case) -> list[Workload]:
    """Return the case in each of its sizes, the weights the same."""
    torch.manual_seed(3)
    model = case.model()
    found = []
    for size in case.sizes:
        inputs = case.inputs(size)
        with torch.no_grad():
            result = model(*inputs)
        outputs = tuple(result) if isinstance(result, tuple | list) else (result,)
        found.append(Workload(model, inputs, outputs))
    return found


def admission_of(workloads: list[Workload], device: DeviceSpec) -> Admission:
    """Return what recipes need of an admission."""
    return Admission(
        task="t",
        device=device,
        tolerance=Tolerance(rtol=1e-4, atol=1e-4),
        workloads=tuple(
            workload_admission(
                str(place),
                tensors=tuple(tensor for tensor, _ in workload.named),
                graph=workload.graph,
            )
            for place, workload in enumerate(workloads)
        ),
    )


def bound(
    code: str, plan_text: str, workload: Workload, device: DeviceSpec
) -> tuple[plans.LaunchSequence, str, dict[str, Any], list[str]]:
    language = device.language.value
    limits = device_limits(device)
    names = name_table(tensor for tensor, _ in workload.named)
    plan = plans.parse(plan_text)
    configuration = plans.default_configuration(plan)
    macros = {**configuration, **plans.constants(plan, names, configuration, limits)}
    signatures = plans.kernels(code, language, macros)
    sequence = plans.bind(
        plan,
        signatures,
        names=names,
        configuration=configuration,
        device=limits,
        language=language,
        library_ops=tuple(plans.LIBRARY_OPS),
    )
    return sequence, code, macros, [s.name for s in signatures]


@dataclass(frozen=True)
class Opened:
    kind: Any
    device: Any
    compiler: Any
    spec: DeviceSpec

    @property
    def options(self) -> list[str]:
        """Options of the compiler: where CUDA's headers are; for SYCL, to optimise nothing.

        What is tried is the text of some hundred kernels, and optimising them takes most of the
        time: recipes are built as users have them in `test_kernels.py` and by evaluators.
        """
        if self.spec.language is not Language.CUDA:
            return ["-O0"]
        return [f"--include-path={folder}" for folder in native.cuda_include_paths()]

    def run(
        self, texts: dict[str, tuple[str, str]], works: dict[str, Workload]
    ) -> dict[str, Tensors]:
        """Run candidates, each (device code, plan) on its workload; return outputs by name.

        All are compiled as one: what starting a compiler takes is paid once.
        """
        sequences = {name: bound(*text, works[name], self.spec)[0] for name, text in texts.items()}
        source, kernels = self.unit(texts, works)
        built = self.compiler.compile(source=source, options=self.options, kernels=kernels)
        program = self.device.load(code=built.code, kernels=kernels)
        return {
            name: self._run(program, f"{name}_", sequence, works[name])
            for name, sequence in sequences.items()
        }

    def unit(
        self, texts: dict[str, tuple[str, str]], works: dict[str, Workload]
    ) -> tuple[str, list[str]]:
        """Return (source, kernels) of all candidates."""
        units = [
            _alone(name, *bound(*text, works[name], self.spec)[1:]) for name, text in texts.items()
        ]
        start = native.prelude(self.spec.language.value)
        return start + "".join(u for u, _ in units), [k for _, names in units for k in names]

    def _run(
        self, program: Any, prefix: str, sequence: plans.LaunchSequence, workload: Workload
    ) -> Tensors:
        launches = self.kind.LaunchSequence(self.device)
        for step in sequence.steps:
            assert isinstance(step, plans.Launch)
            launches.launch(
                program=program,
                kernel=prefix + step.kernel,
                grid=step.grid,
                block=step.block,
                dimensions=step.dimensions,
                arguments=[launch_argument(self.kind, a) for a in step.arguments],
            )
        tensors = {tensor.name: value for tensor, value in workload.named}
        memory = [self.device.allocate(b.size_bytes) for b in sequence.buffers]
        pairs = list(zip(sequence.buffers, memory, strict=True))
        for buffer, place in pairs:
            unwritten = torch.full((buffer.size_bytes,), 255, dtype=torch.uint8)
            start = tensors.get(buffer.name, unwritten)
            self.device.copy(place.address, start.data_ptr(), buffer.size_bytes)
        launches.bind(0, [place.address for place in memory])
        launches.run(0)
        self.device.synchronize()
        roles = {t.name: t.role for t, _ in workload.named}
        found = {}
        for buffer, place in pairs:
            if roles.get(buffer.name) is TensorRole.OUTPUT:
                out = found[buffer.name] = torch.empty_like(tensors[buffer.name])
                self.device.copy(out.data_ptr(), place.address, buffer.size_bytes)
        self.device.synchronize()
        return found


def _alone(
    name: str, code: str, macros: dict[str, Any], kernels: list[str]
) -> tuple[str, list[str]]:
    """Return the code in a namespace of its own, its sizes written out, its kernels renamed."""
    code = re.sub(r"\bstep_(?=\d)", f"{name}_step_", code)
    code = re.sub(r"\b(D\d+|BLOCK)\b", lambda m: str(macros[m[0]]), code)
    includes = "".join(line + "\n" for line in code.splitlines() if line.startswith("#include"))
    rest = "\n".join(line for line in code.splitlines() if not line.startswith("#include"))
    unit = f"{includes}namespace unit_{name} {{\n{rest}\n}}\n"
    return unit, [f"{name}_{kernel}" for kernel in kernels]


def launch_argument(kind: Any, argument: Any) -> Any:
    """Return an argument of a launch as native module `kind` takes it."""
    if isinstance(argument, plans.BufferArgument):
        return kind.buffer_argument(argument.index)
    if isinstance(argument, plans.ScalarArgument):
        return kind.scalar_argument(argument.ctype, argument.value)
    return kind.local_argument(argument.element_bytes, argument.count)
