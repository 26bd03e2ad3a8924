"""The `recipes` model as a LiteLLM custom provider: beside others it walks the path that they do.

Imports LiteLLM, so it is itself imported only on first use.
"""

from typing import Any

from litellm import Choices, Message, ModelResponse, Usage
from litellm.exceptions import BadRequestError
from litellm.llms.custom_llm import CustomLLM

from generator_svc.llm.assignment import METADATA_KEY
from generator_svc.llm.recipes_model import compose

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
        try:
            text, refusal = await compose(call["litellm_params"]["metadata"][METADATA_KEY])
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
