"""The `recipes` model, which answers in this process: its facts and its replies.

It reads the assignment that stands beside the prompt.
"""

import asyncio
import time
from typing import Final

from generator_svc import recipes
from generator_svc.llm.assignment import Assignment
from generator_svc.llm.catalogue import RECIPES
from generator_svc.llm.interface import ModelFacts, ModelReply
from generator_svc.llm.retrying import FailedAttempt
from kernel_foundry.domain.exchange import FinishReason
from kernel_foundry.domain.plain import from_json
from kernel_foundry.domain.request import TokenUsage
from kernel_foundry.errors import KernelFoundryError

FACTS: Final = ModelFacts(
    input_usd_per_token=0.0,
    output_usd_per_token=0.0,
    max_output_tokens=None,
    counts_tokens=False,
)


async def compose(assignment: str) -> tuple[str, str]:
    """Return (candidate, ""), or ("", reason) when no recipe covers the task.

    Args:
        assignment: JSON of `Assignment`.
    """
    return await asyncio.to_thread(_propose, from_json(Assignment, assignment))


async def answer(assignment: str) -> ModelReply:
    """Return the reply to an assignment, which costs nothing.

    What no recipe can do is a refusal, not an error: it is the answer of a model that ran.

    Raises:
        FailedAttempt: a recipe raised what it should not.
    """
    started_s = time.monotonic()
    try:
        text, refusal = await compose(assignment)
    except Exception as bug:
        error = KernelFoundryError(
            f"model {RECIPES!r} has a bug: {type(bug).__name__}: {bug}", model=RECIPES
        )
        raise FailedAttempt(error, is_transient=False) from bug
    return ModelReply(
        text=refusal or text,
        finish=FinishReason.REFUSED if refusal else FinishReason.STOP,
        usage=TokenUsage(
            model=RECIPES,
            input_tokens=0,
            output_tokens=0,
            cost_usd=0.0,
            latency_ms=(time.monotonic() - started_s) * 1e3,
        ),
    )


def _propose(assignment: Assignment) -> tuple[str, str]:
    try:
        text = recipes.propose(
            admission=assignment.admission,
            selection=assignment.selection,
            language=assignment.language,
            seed=assignment.seed,
            library_ops=assignment.library_ops,
        )
    except recipes.RecipeUnsupported as unsupported:
        return "", f"recipes cannot do this task: {unsupported}"
    return text, ""
