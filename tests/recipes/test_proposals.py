"""Proposals: plain first, then moves; deterministic; limits are told."""

import random
from dataclasses import replace

import pytest
import torch
from torch import nn

from generator_svc.recipes import RecipeUnsupported, propose
from generator_svc.recipes.genome import draw, mutate, plain, read_genome
from generator_svc.recipes.graph_reader import read_graph
from generator_svc.recipes.sycl.row_genes import FAMILY
from generator_svc.recipes.sycl.row_recipe import SyclRowRecipe
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures
from kernel_foundry.plan.candidate_text import split
from tests.recipes.cuda_candidates import cuda_recipe
from tests.recipes.modules import ROW_MODULES, LinearRelu
from tests.recipes.reference_graph import CUDA_DEVICE, admission_of


@pytest.fixture(scope="module")
def admission() -> Admission:
    return admission_of(ROW_MODULES["bias_gelu_layernorm"](64), (torch.randn(4, 64),))


def _seed(sequence: int) -> Selection:
    return Selection(operator=Operator.SEED, sequence=sequence)


def _propose(admission: Admission, selection: Selection, seed: int = 7) -> str:
    return propose(admission=admission, selection=selection, language=Language.SYCL, seed=seed)


def _elite(text: str) -> Elite:
    source = split(text)
    return Elite(
        candidate=Candidate(source=source),
        evaluation=Evaluation(
            candidate=source.digest,
            task="t",
            device="sycl:0",
            outcome=EvaluationOutcome.COMPILE_ERROR,
        ),
        fitness=0.5,
        measures=Measures(memory=0, algorithm=0, synchronization=0),
    )


def test_first_proposal_is_the_plain_kernel_whatever_the_seed(admission: Admission) -> None:
    first = _propose(admission, _seed(0), seed=1)
    assert first == _propose(admission, _seed(0), seed=2)
    assert "who=item" in first
    assert "sub_group" not in split(first).device_code


def test_proposals_are_deterministic_and_seeds_differ(admission: Admission) -> None:
    texts = [_propose(admission, _seed(n)) for n in range(1, 12)]
    assert texts == [_propose(admission, _seed(n)) for n in range(1, 12)]
    assert len(set(texts)) > 8


def test_mutation_never_repeats_its_parent(admission: Admission) -> None:
    genes = SyclRowRecipe(read_graph(admission)).genes
    parent_text = _propose(admission, _seed(3))
    parent = read_genome(split(parent_text).plan, FAMILY, genes)
    assert parent is not None
    for sequence in range(20):
        selection = Selection(
            operator=Operator.MUTATE,
            parent=_elite(parent_text),
            sequence=sequence,
            target=Measures(memory=1, algorithm=2, synchronization=2),
        )
        child = read_genome(split(_propose(admission, selection)).plan, FAMILY, genes)
        assert child is not None
        assert child != parent


def test_direction_pulls_towards_the_target(admission: Admission) -> None:
    plain_text = _propose(admission, _seed(0))

    def share(target: Measures) -> int:
        found = 0
        for sequence in range(1, 150):
            selection = Selection(
                operator=Operator.MUTATE,
                parent=_elite(plain_text),
                sequence=sequence,
                target=target,
            )
            found += "who=sub_group" in _propose(admission, selection)
        return found

    near = share(Measures(memory=1, algorithm=2, synchronization=2))
    far = share(Measures(memory=0, algorithm=0, synchronization=0))
    assert near > 1.5 * far


def test_a_mutation_never_comes_to_its_parent(admission: Admission) -> None:
    """Genes that make no difference beside others are no step, nor half of one."""
    recipe = SyclRowRecipe(read_graph(admission))
    rng = random.Random(1)
    for _ in range(300):
        parent = recipe.normalised(draw(recipe.family, recipe.genes, rng))
        child = mutate(parent, recipe.genes, recipe.normalised, recipe.expected, None, rng)
        assert child != parent
        assert child == recipe.normalised(child)


def test_uncovered_operator_is_named() -> None:
    class Sorted(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sort(x)[0]

    admission = admission_of(Sorted(), (torch.randn(2, 8),))
    with pytest.raises(RecipeUnsupported, match=r"aten\.sort"):
        _propose(admission, _seed(0))


def test_what_no_pattern_covers_gets_plain_kernels_that_vary() -> None:
    admission = admission_of(nn.Conv1d(2, 2, 3), (torch.randn(1, 2, 8),))
    texts = [_propose(admission, _seed(n)) for n in range(12)]
    assert all("# genome: plain " in text for text in texts)
    assert len(set(texts)) > 4
    child = Selection(operator=Operator.MUTATE, parent=_elite(texts[0]), sequence=20)
    assert _propose(admission, child) != texts[0]


def test_first_cuda_proposal_is_the_one_that_suits_the_sizes(admission: Admission) -> None:
    text = propose(admission=admission, selection=_seed(0), language=Language.CUDA, seed=1)
    assert "who=warp" in text  # 64 columns: no work for a block
    assert "__shfl_xor_sync" in split(text).device_code


def test_cuda_proposals_move_towards_the_target() -> None:
    admission = admission_of(ROW_MODULES["softmax"](4096), (torch.randn(2, 4096),))
    first = propose(admission=admission, selection=_seed(0), language=Language.CUDA, seed=1)
    parent = _elite(first)

    def share(target: Measures) -> int:
        found = 0
        for sequence in range(1, 150):
            selection = Selection(
                operator=Operator.MUTATE, parent=parent, sequence=sequence, target=target
            )
            text = propose(admission=admission, selection=selection, language=Language.CUDA, seed=1)
            assert text != first
            found += "__shfl" not in text
        return found

    barriers = Measures(memory=1, algorithm=2, synchronization=1)
    shuffles = Measures(memory=1, algorithm=2, synchronization=2)
    assert share(barriers) > 1.3 * share(shuffles)


def test_first_cuda_product_fills_the_device() -> None:
    """One large product takes the widest tile; a small one splits its inner dimension too."""
    large = admission_of(LinearRelu(2048, 4096), (torch.randn(4096, 2048),))
    small = admission_of(LinearRelu(1024, 128), (torch.randn(64, 1024),))
    first = [
        propose(admission=a, selection=_seed(0), language=Language.CUDA, seed=1)
        for a in (replace(large, device=CUDA_DEVICE), replace(small, device=CUDA_DEVICE))
    ]
    assert "tile=128x128x8x8 split=1" in first[0]
    assert "split=1 " not in first[1]
    assert "sum_parts" in first[1]


def test_two_sums_of_exponentials_of_one_value_are_both_written() -> None:
    """Two operators may ask for the same sum about the same maximum."""

    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x, -1) * torch.logsumexp(x, -1, keepdim=True)

    recipe = cuda_recipe(Scaled(), (torch.randn(2, 64),))
    genome = plain(recipe.family, recipe.genes).replaced("moments", "one_pass")
    device_code, _ = recipe.write(recipe.normalised(genome))
    assert device_code.count("over_team<Sum, ") == 2
