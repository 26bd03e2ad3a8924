"""The `recipes` model as a LiteLLM custom provider, so that it walks the same path as any other.

Imports LiteLLM, so it is itself imported only on first use. Knows nothing of prompts: it reads
the assignment that stands beside them.
"""

import asyncio
from typing import Any

from litellm import Choices, Message, ModelResponse, Usage
from litellm.exceptions import BadRequestError
from litellm.llms.custom_llm import CustomLLM

from generator_svc.llm.assignment import METADATA_KEY, Assignment
from kernel_foundry.domain.plain import from_json

PROVIDER = "recipes"
"""LiteLLM's name of the provider; models are called `recipes/<anything>`."""


class RecipesBugError(BadRequestError):  # type: ignore[misc]  # untyped base
    """A recipe raised what it should not; a bad request is what LiteLLM does not ask again."""


class RecipesProvider(CustomLLM):  # type: ignore[misc]  # untyped base
    """Answers a chat completion with a candidate that recipes compose."""

    async def acompletion(self, *_: Any, **call: Any) -> ModelResponse:
        """Return the candidate as a normal completion that cost nothing.

        What no recipe can do is a refusal, not an error: it is the answer of a model that ran.
        """
        assignment = from_json(Assignment, call["litellm_params"]["metadata"][METADATA_KEY])
        try:
            text, refusal = await asyncio.to_thread(_propose, assignment)
        except Exception as bug:  # LiteLLM would take it for a lost connection and retry it
            message = f"{type(bug).__name__}: {bug}"
            raise RecipesBugError(message, call["model"], PROVIDER) from bug
        return ModelResponse(
            model=f"{PROVIDER}/{call['model']}",
            choices=[
                Choices(
                    finish_reason="stop",
                    message=Message(
                        role="assistant",
                        content=text,
                        provider_specific_fields={"refusal": refusal} if refusal else None,
                    ),
                )
            ],
            usage=Usage(prompt_tokens=0, completion_tokens=0, total_tokens=0),
        )


def _propose(assignment: Assignment) -> tuple[str, str]:
    """Return (reply, ""), or ("", reason) when no recipe covers the task."""
    from generator_svc import recipes

    try:
        text = recipes.propose(
            admission=assignment.admission,
            selection=assignment.selection,
            language=assignment.language,
            seed=assignment.seed,
        )
    except recipes.RecipeUnsupported as unsupported:
        return "", f"recipes cannot do this task: {unsupported}"
    return text, ""
