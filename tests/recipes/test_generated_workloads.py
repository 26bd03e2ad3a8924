"""Recipes read the graphs that there are; plans refuse sizes that only workloads without show."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from generator_svc.recipes.genome import plain
from generator_svc.recipes.plain import PlainRecipe
from generator_svc.recipes.plain.fixed_sizes import fixed_sizes
from kernel_foundry.domain.admission import Admission, GraphNode, NamedScalar
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.plan import NotMeant
from tests.domain_values import workload_admission
from tests.judge.judge_tasks import DEVICE
from tests.recipes.plain_modules import Case, OneInput
from tests.recipes.plain_run import admission_of, bound, workloads_of

_NODE = GraphNode(name="x", op="placeholder", arguments=(), keywords=(), dtype="", shape=())


def test_generated_workloads_without_a_graph_are_left_out() -> None:
    own = workload_admission("own", graph=(_NODE,))
    odd = workload_admission("odd", held_out=True, is_generated=True, graph=(_NODE,))
    tiny = workload_admission("tiny", held_out=True, is_generated=True)
    admission = Admission(
        task="t", device=DEVICE, workloads=(own, odd, tiny), tolerance=Tolerance(rtol=1e-4, atol=0)
    )
    assert admission.with_graphs.workloads == (own, odd)
    # What the task names and nothing could export stays, for recipes to refuse.
    bare = replace(admission, workloads=(replace(own, graph=()), odd))
    assert bare.with_graphs.workloads == bare.workloads


def test_a_plan_refuses_modules_made_with_sizes_that_no_graph_shows() -> None:
    """The channels are numbers in the kernels: half the outputs would never be written."""
    narrow, wide = (
        workloads_of(Case(lambda n=n: OneInput(_convolve, conv=nn.Conv2d(3, n, 3)), _images))
        for n in (4, 8)
    )
    own = admission_of(narrow, DEVICE)
    other = replace(admission_of(wide[:1], DEVICE).workloads[0], graph=(), is_generated=True)
    spare = replace(other, workload="spare", is_spare=True)
    recipe = PlainRecipe(replace(own, workloads=(*own.workloads, other, spare)), Language.SYCL)
    text = recipe.write(plain(recipe.family, recipe.genes))
    assert text[1].count("require(") == 1  # one difference tells both
    assert bound(*text, narrow[0], DEVICE)[0].steps
    with pytest.raises(NotMeant, match=r"conv_weight\.shape\[0\] == 4"):
        bound(*text, wide[0], DEVICE)


def test_a_plan_refuses_other_numbers_of_a_module() -> None:
    own, other = (
        workload_admission(str(n), graph=(_NODE,), scalars=(NamedScalar(name="groups", literal=n),))
        for n in ("4", "8")
    )
    other = replace(other, graph=(), is_generated=True)
    admission = Admission(
        task="t", device=DEVICE, workloads=(own, other), tolerance=Tolerance(rtol=1e-4, atol=0)
    )
    assert [size.condition for size in fixed_sizes(admission)] == ["groups == 4"]
    assert fixed_sizes(replace(admission, workloads=(own,))) == ()


def _convolve(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.conv(x)


def _images(batch: int) -> tuple[torch.Tensor]:
    return (torch.randn(batch, 3, 5, 5),)
