"""`LanguageModels` by LiteLLM, which the first call that needs it loads: recipes, agents do not.

Loading takes seconds, so it happens in a thread; the event loop keeps serving.
"""

import asyncio
import gc
import importlib
import os
import random
from functools import partial
from types import ModuleType
from typing import Final, cast

from generator_svc.llm import agent_models, recipes_model
from generator_svc.llm.answer_time import answer_seconds
from generator_svc.llm.catalogue import RECIPES, check_model_name, check_spelling, default_models
from generator_svc.llm.interface import ModelFacts, ModelReply, ModelRequest
from generator_svc.llm.retrying import ModelRetryPolicy, Retries
from kernel_foundry.domain.agents import is_agent

_ENVIRONMENT: Final = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it downloads its cost table at import
    "LITELLM_MODE": "PRODUCTION",  # else it reads .env files around the working directory
}


class LiteLlmModels:
    """Every model that LiteLLM reaches, coding agents, and `recipes`.

    Args:
        timeout_seconds: Of one attempt; None: as the environment says, see `answer_seconds`.
        retrying: How often and after which pauses a model is asked again.
        rng: Of the pauses' jitter.

    Raises:
        LlmConfigurationError: the environment's time is none.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float | None = None,
        retrying: ModelRetryPolicy = ModelRetryPolicy(),  # noqa: B008  frozen, a plain value
        rng: random.Random | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds or answer_seconds(os.environ)
        self._retries = Retries(retrying, rng=rng)
        self._loading = asyncio.Lock()
        self._loaded: ModuleType | None = None

    async def check(self, models: tuple[str, ...]) -> None:
        """See `LanguageModels.check`."""
        for model in filter(is_agent, models):
            agent_models.check(model)
        named = [model for model in models if model != RECIPES and not is_agent(model)]
        if not named:
            return
        for model in named:
            check_spelling(model)
            check_model_name(model, os.environ)
        sdk = await self._sdk()
        for model in named:
            sdk.check(model)

    async def facts(self, model: str) -> ModelFacts:
        """See `LanguageModels.facts`."""
        if model == RECIPES:
            return recipes_model.FACTS
        if is_agent(model):
            return agent_models.FACTS
        sdk = await self._sdk()
        return cast("ModelFacts", sdk.facts(model))

    async def complete(self, request: ModelRequest) -> ModelReply:
        """See `LanguageModels.complete`."""
        if set(request.models) == {RECIPES}:
            return await self._retries.ask(
                request, lambda _: recipes_model.answer(request.assignment)
            )
        return await self._retries.ask(request, partial(self._attempt, request=request))

    async def list_models(self) -> tuple[str, ...]:
        """See `LanguageModels.list_models`; needs no LiteLLM."""
        return default_models(os.environ)

    async def close(self) -> None:
        """See `LanguageModels.close`; loads nothing."""
        if self._loaded is not None:
            await self._loaded.close()

    async def _attempt(self, model: str, request: ModelRequest) -> ModelReply:
        if is_agent(model):
            return await agent_models.attempt(model, request, self._timeout_seconds)
        sdk = await self._sdk()
        return cast("ModelReply", await sdk.attempt(model, request, self._timeout_seconds))

    async def _sdk(self) -> ModuleType:
        async with self._loading:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(load_sdk)
        return self._loaded


def load_sdk() -> ModuleType:
    """Return `generator_svc.llm.sdk`, set up; takes seconds the first time."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    collects = gc.isenabled()
    gc.disable()  # looking for garbage among thousands of modules takes a third of the import
    try:
        sdk = importlib.import_module("generator_svc.llm.sdk")
    finally:
        if collects:
            gc.enable()
    sdk.set_up()
    return sdk
