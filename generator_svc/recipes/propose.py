"""Makes a proposal: which recipe, which genome, and the candidate's text.

The model that answers with it is in `llm/recipes_model.py`.
"""

import random
from typing import Final

from generator_svc.recipes.genome import (
    Genome,
    asked_for,
    combine,
    draw,
    mutate,
    plain,
    read_genome,
)
from generator_svc.recipes.recipe import Recipe
from generator_svc.recipes.recipes import recipe_for
from generator_svc.recipes.unsupported import RecipeUnsupported
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.candidate import KernelSource, Operator
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.trick import named_trick
from kernel_foundry.plan.candidate_text import render

_DRAWS: Final = 32
"""Kernels written in search of one without what is banned."""


def propose(
    *,
    admission: Admission,
    selection: Selection,
    language: Language,
    seed: int,
    library_ops: tuple[str, ...] = (),
) -> str:
    """Return a candidate as Markdown.

    The first proposal of a run has every gene's first value: the plainest kernel in SYCL, where
    styles are cheap to try, and in CUDA the one that is likely best for the task's sizes. Later
    seeds are random, and everything else moves away from its parents along the asked direction.

    Args:
        admission: The task, with its operator graph.
        selection: Parents and direction. Genes that its user's hint names as NAME=VALUE have that
            value; a kernel with a banned trick's words is not proposed.
        language: Of the kernel.
        seed: Of the run; with the selection's sequence it decides every random choice.
        library_ops: Library calls that the task allows, by their names in plans.

    Raises:
        RecipeUnsupported: no recipe covers the task, or does without what is banned.
    """
    recipe = recipe_for(admission, language, library_ops)
    rng = random.Random(f"{seed}:{selection.sequence}")
    genome = _genome(recipe, selection, rng)
    for _ in range(_DRAWS):
        genome = asked_for(genome, recipe.genes, recipe.normalised, selection.user_hint)
        device_code, plan = recipe.write(genome)
        # The plan names the genes, so that a user can ban one.
        if not named_trick(selection.banned_tricks, device_code, plan):
            return render(KernelSource(language=language, device_code=device_code, plan=plan))
        genome = _drawn(recipe, rng)
    raise RecipeUnsupported(
        f"without {', '.join(map(repr, selection.banned_tricks))}, which the run's user bans"
    )


def missing_recipe(admission: Admission) -> str:
    """Return what of an admitted task no recipe can do; empty: one writes kernels for it."""
    try:
        recipe_for(admission, admission.device.language)
    except RecipeUnsupported as unsupported:
        return str(unsupported)
    return ""


def _genome(recipe: Recipe, selection: Selection, rng: random.Random) -> Genome:
    if selection.parent is None:
        if selection.sequence == 0:
            return recipe.normalised(plain(recipe.family, recipe.genes))
        return _drawn(recipe, rng)
    found = [
        read_genome(elite.candidate.source.plan, recipe.family, recipe.genes)
        for elite in (selection.parent, *selection.inspirations)
    ]
    parents = [genome for genome in found if genome is not None]
    if not parents:  # written by hand or by a model
        return _drawn(recipe, rng)
    if selection.operator is Operator.COMBINE and len(parents) > 1:
        child = recipe.normalised(combine(parents[0], parents[1], rng))
        if child not in parents:
            return child
    # Recipes write what can be tuned as parameters, so there is nothing to make tunable.
    return mutate(
        parents[0], recipe.genes, recipe.normalised, recipe.expected, selection.target, rng
    )


def _drawn(recipe: Recipe, rng: random.Random) -> Genome:
    genome = draw(recipe.family, recipe.genes, rng, favours_first=recipe.favours_first)
    return recipe.normalised(genome)
