"""Whole runs against a provider of which three answers in ten are faulty, over real HTTP.

Loop, archive, generator and LiteLLM are the real ones; candidates are judged by the fake
evaluator, and the provider is the test suite's. Four parts: no caps, a token cap, a USD cap, a
cap on requests a minute. Afterwards the run's books are compared with what the provider saw, and
what was proposed with what is stored.

Run: python -m benchmarks.fault_drill [--proposals 500] [--out FILE]
"""

import argparse
import asyncio
import json
import os
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from archive_svc.archive import LocalArchive
from benchmarks.faulty_provider import CANDIDATE_TASK, FaultyProvider
from benchmarks.result_file import out_option, write_host_result
from generator_svc.assembly import assemble
from generator_svc.llm.litellm_models import LiteLlmModels
from generator_svc.llm.retrying import ModelRetryPolicy
from kernel_foundry.domain.account import RunAccount
from kernel_foundry.domain.archive import ArchivedEvaluation, RunSpec, Selection
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits, Proposal, ProposalRequest
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.errors import LlmQuotaError, LlmUnavailableError
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.evolution import Evolution
from kernel_foundry.sdk.loop.progress import RunResult
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.llm_server import LlmServer

NAME: Final = "fault_drill"
RUN: Final = "drill"
MODELS: Final = ("openai/gpt-5-mini", "openai/gpt-4.1-mini")
"""Two with a price, so that a USD cap can be held."""
IN_FLIGHT: Final = 8
FAULTY_SHARE: Final = 0.3
TIMEOUT_SECONDS: Final = 2.0
OUTAGE: Final = range(200, 290)
"""Requests; long enough that proposals in flight go unanswered, all their retries used up."""

_RETRYING: Final = ModelRetryPolicy(first_back_off_seconds=0.05, longest_back_off_seconds=0.4)


class Enough(LlmQuotaError):  # noqa: N818  no error: how the loop is told to end in order
    """The drill has its proposals; what was proposed is still judged."""


@dataclass(kw_only=True)
class Watch:
    """What passed between the loop and the services."""

    proposals: int = 0
    unanswered: int = 0
    selected: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)


class WatchedGenerator:
    """A generator that makes a number of proposals and no more."""

    def __init__(self, inner: Any, most: int, watch: Watch) -> None:
        self._inner = inner
        self._most = most
        self._watch = watch
        self._begun = 0
        self._changed = asyncio.Condition()

    async def propose(self, request: ProposalRequest) -> Proposal:
        """See `Generator.propose`; a call that no model answers is no proposal."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._begun < self._most or self._watch.proposals >= self._most
            )
            if self._begun >= self._most:
                raise Enough("the drill has its proposals")
            self._begun += 1
        is_made = False
        try:
            proposal: Proposal = await self._inner.propose(request)
            is_made = True
        except LlmUnavailableError:
            self._watch.unanswered += 1
            raise
        finally:
            async with self._changed:
                self._watch.proposals += is_made
                self._begun -= not is_made
                self._changed.notify_all()
        return proposal

    def __getattr__(self, name: str) -> Any:
        """Hand everything else on."""
        return getattr(self._inner, name)


class WatchedArchive:
    """An archive whose selections are noted."""

    def __init__(self, inner: LocalArchive, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch

    async def select(self, run: str, *, strategy: str = "") -> Selection:
        """See `LocalArchive.select`."""
        selection = await self._inner.select(run, strategy=strategy)
        self._watch.selected.append(selection.sequence)
        return selection

    async def drop_selection(self, run: str, selection: int) -> None:
        """See `LocalArchive.drop_selection`."""
        self._watch.dropped.append(selection)
        await self._inner.drop_selection(run, selection)

    def __getattr__(self, name: str) -> Any:
        """Hand everything else on."""
        return getattr(self._inner, name)


async def drill(
    folder: Path,
    proposals: int,
    budget: Budget,
    *,
    seed: int = 1,
    outage: range = range(0),
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> dict[str, Any]:
    """Make one run in `folder`; return what it and the provider saw.

    Args:
        folder: Empty; takes both stores.
        proposals: After so many the run ends, unless a cap ends it.
        budget: Its caps are the run's.
        seed: Of the run and of the faults.
        outage: Numbers of the requests that nobody answers.
        timeout_seconds: How long an answer is waited for.
    """
    provider = FaultyProvider(FAULTY_SHARE, seed=seed, outage=outage)
    watch = Watch()
    with LlmServer(provider) as server:
        os.environ["OPENAI_BASE_URL"] = server.base_url
        os.environ.setdefault("OPENAI_API_KEY", "sk-drill")
        started_s = time.monotonic()
        ended = await _evolve(folder, proposals, budget, watch, seed, timeout_seconds)
        seconds = time.monotonic() - started_s
        # Opened anew: what is stored, not what a process remembers.
        account, stored = await _account(folder), await _stored(folder)
        return {
            "ended_by": "proposals" if watch.proposals == proposals else ended.cause.value,
            "seconds": seconds,
            **_proposals(watch, stored),
            **_requests(server, provider, account),
            **_caps(server, provider, account, budget),
        }


async def _evolve(
    folder: Path, proposals: int, budget: Budget, watch: Watch, seed: int, timeout_seconds: float
) -> RunResult:
    archive = LocalArchive(_runs_url(folder))
    models = LiteLlmModels(
        timeout_seconds=timeout_seconds, retrying=_RETRYING, rng=random.Random(seed)
    )
    generator = assemble(
        store_url=_store_url(folder), exchanges=folder / "exchanges", models=models
    ).generator
    try:
        run = await archive.create_run(
            RunSpec(
                name=RUN,
                task=CANDIDATE_TASK,
                language=Language.SYCL,
                device="fake:0",
                models=MODELS,
                strategy="gradient",
                seed=seed,
            )
        )
        evolution = Evolution(
            evaluator=FakeEvaluator(),
            archive=WatchedArchive(archive, watch),
            generator=WatchedGenerator(generator, proposals, watch),
            run=run,
            # The provider's fast candidates are no reason to end before its faults have come.
            budget=replace(budget, stop_at=NEVER),
            limits=EvaluationLimits(),
            in_flight=IN_FLIGHT,
            judging=1,
            listener=lambda _: None,
        )
        return await evolution.run()
    finally:
        await generator.close()
        await archive.close()


async def _stored(folder: Path) -> list[ArchivedEvaluation]:
    """Return all that the archive keeps of proposals."""
    archive, after, found = LocalArchive(_runs_url(folder)), 0, list[ArchivedEvaluation]()
    try:
        while archived := await archive.evaluations(RUN, after=after):
            found += [one for one in archived if one.selection is not None]
            after = archived[-1].sequence
    finally:
        await archive.close()
    return found


async def _account(folder: Path) -> RunAccount:
    parts = assemble(store_url=_store_url(folder), exchanges=folder / "exchanges")
    try:
        return await parts.generator.account(RUN)
    finally:
        await parts.generator.close()


def _runs_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'runs.db'}"


def _store_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'generator.db'}"


def _proposals(watch: Watch, stored: list[ArchivedEvaluation]) -> dict[str, Any]:
    """Compare what was proposed with what is stored or was given back."""
    archived = [one.selection for one in stored]
    repeats = len(watch.dropped) - (len(watch.selected) - watch.proposals)
    return {
        "proposals": watch.proposals,
        "stored": len(archived),
        "given_back_as_repeats": repeats,
        "calls_that_no_model_answered": watch.unanswered,
        "lost": watch.proposals - len(set(archived)) - repeats,
        "selections_without_an_end": len(set(watch.selected) - set(archived) - set(watch.dropped)),
        "stored_twice": sum(count - 1 for count in Counter(archived).values())
        + sum(count - 1 for count in Counter(one.candidate.digest for one in stored).values()),
        "stored_and_given_back": len(set(archived) & set(watch.dropped)),
    }


def _requests(server: LlmServer, provider: FaultyProvider, account: RunAccount) -> dict[str, Any]:
    """Compare the books with what the provider received and billed.

    The call for better guidance that the end of the run cancels is counted as a request; what
    its reply was billed for is not known, and is the one difference there may be.
    """
    received = Counter(f"openai/{request.model}" for request in server.requests)
    counted = {spend.model: spend.requests for spend in account.spend if spend.requests}
    counted_tokens = sum(s.prompt_tokens + s.completion_tokens for s in account.spend)
    return {
        "answers": dict(sorted(provider.answers.items())),
        "faulty_share": provider.faulty_share,
        "requests_received": sum(received.values()),
        "requests_counted": sum(counted.values()),
        "requests_agree_for_each_model": dict(received) == counted,
        "retries_counted": sum(spend.retries for spend in account.spend),
        "tokens_billed_for_replies": provider.billed.tokens,
        "tokens_counted": counted_tokens,
        "tokens_billed_for_a_call_cancelled_at_the_end": provider.billed.tokens - counted_tokens,
        "tokens_of_the_largest_request": provider.largest_request_tokens,
        "usd_counted": sum(spend.usd for spend in account.spend),
        "most_requests_in_flight": server.most_in_flight,
    }


def _caps(
    server: LlmServer, provider: FaultyProvider, account: RunAccount, budget: Budget
) -> dict[str, Any]:
    """Return by how much each cap was exceeded; nothing or less: it was held."""
    found: dict[str, Any] = {}
    if budget.tokens is not None:
        found["token_cap"] = budget.tokens
        found["budget_used_share"] = provider.billed.tokens / budget.tokens
        found["tokens_above_cap"] = provider.billed.tokens - budget.tokens
        # Nobody here can know what was billed for an answer that never came whole.
        found["tokens_above_cap_if_lost_answers_are_billed"] = (
            provider.billed.tokens + provider.lost.tokens - budget.tokens
        )
    if budget.cost_usd is not None:
        usd = sum(spend.usd for spend in account.spend)
        found["usd_cap"] = budget.cost_usd
        found["budget_used_share"] = usd / budget.cost_usd
        found["usd_above_cap"] = usd - budget.cost_usd
    if budget.requests_per_minute is not None:
        found["requests_per_minute_cap"] = budget.requests_per_minute
        found["most_requests_in_a_minute"] = _most_in_a_minute(server)
    return found


def _most_in_a_minute(server: LlmServer) -> int:
    times_s = sorted(request.received_unix_s for request in server.requests)
    first, most = 0, 0
    for last, time_s in enumerate(times_s):
        while time_s - times_s[first] >= 60.0:
            first += 1
        most = max(most, last - first + 1)
    return most


def parts(proposals: int) -> dict[str, tuple[int, Budget]]:
    """Return each part's number of proposals and budget; the caps end theirs earlier."""
    return {
        "without_caps": (proposals, Budget()),
        "token_cap": (proposals, Budget(tokens=proposals * 2_000)),
        "usd_cap": (proposals, Budget(cost_usd=proposals * 0.002)),
        "requests_per_minute": (proposals // 2, Budget(requests_per_minute=proposals // 2)),
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--proposals", type=int, default=500)
    out_option(parser, NAME)
    options = parser.parse_args()
    measured: dict[str, Any] = {"in_flight": IN_FLIGHT, "models": MODELS}
    for name, (proposals, budget) in parts(options.proposals).items():
        with tempfile.TemporaryDirectory() as folder:
            outage = OUTAGE if name == "without_caps" else range(0)
            measured[name] = asyncio.run(drill(Path(folder), proposals, budget, outage=outage))
        print(name, json.dumps(measured[name], indent=1), flush=True)
    write_host_result(options.out, NAME, measured)


if __name__ == "__main__":
    main()
