"""CUDA candidates of recipes, bound to sizes as the evaluator would, with no device."""

from dataclasses import replace

import torch
from torch import nn

from generator_svc.recipes.genome import Genome
from generator_svc.recipes.graph_reader import read_graph
from generator_svc.recipes.kernel_templates import kernel_text
from generator_svc.recipes.recipe import Recipe
from generator_svc.recipes.recipes import choose_recipe
from kernel_foundry import plan as plans
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.from_admission import device_limits, name_table
from tests.cuda_on_host import host_run
from tests.cuda_on_host.host_run import BoundCandidate
from tests.recipes.reference_graph import CUDA_DEVICE, admission_of, tensors_of

LIMITS = device_limits(CUDA_DEVICE)


_HOST_ASYNC_COPY = """\
static inline void copy_async(float* to, const float* from, bool inside) {
  host::copy_later(to, from, 4, inside);
}
static inline void copy_quad_async(float* to, const float* from, bool inside) {
  host::copy_later(to, from, 16, inside);
}
static inline void end_of_copies() { host::commit_copies(); }
static inline void wait_for_copies() { host::finish_copies(STAGES - 2); }
"""
"""What `async_copy.cuh` says in assembly."""


def cuda_recipe(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> Recipe:
    graph = read_graph(admission_of(model, inputs))
    return choose_recipe(graph, language=Language.CUDA, device=CUDA_DEVICE)


def bind(
    recipe: Recipe, genome: Genome, model: nn.Module, inputs: tuple[torch.Tensor, ...]
) -> BoundCandidate:
    """Return the candidate of `genome`, bound to the sizes of `inputs`."""
    code, plan_text = recipe.write(recipe.normalised(genome))
    plan = plans.parse(plan_text)
    tensors = _tensors(model, inputs)
    names = name_table(tensors_of(model, inputs))
    configuration = plans.default_configuration(plan)
    assert plans.is_meant(plan, configuration), genome.comment()
    return host_run.bind(
        code,
        plan,
        names=names,
        configuration=configuration,
        device=LIMITS,
        tensors=tensors,
    )


def for_host(candidate: BoundCandidate) -> BoundCandidate:
    assembly = kernel_text("cuda/kernels/async_copy.cuh")
    code = candidate.device_code.replace(assembly, _HOST_ASYNC_COPY)
    return replace(candidate, device_code=code)


def _tensors(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
    import inspect

    names = inspect.signature(model.forward).parameters
    with torch.no_grad():
        out = torch.full_like(model(*inputs), float("nan"))
    parameters = {p.replace(".", "_"): v.detach() for p, v in model.named_parameters()}
    return {**dict(zip(names, inputs, strict=True)), **parameters, "out": out}
