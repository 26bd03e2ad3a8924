"""Of the requests of a run that are in flight no two carry the same prompt."""

import asyncio
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator_svc.experts import expert_of
from generator_svc.llm.interface import ModelReply, ModelRequest
from generator_svc.prompting.length import LEAST_MAX_CHARS
from generator_svc.prompting.prompts_in_flight import PromptsInFlight
from generator_svc.prompting.writer import PromptWriter
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.request import ProposalRequest
from tests.generator.conftest import Samples, failed_elite, passed_elite, reply

_ISLANDS = ("fusion", "memory", "general", "")
_TARGETS = (None, Measures(memory=2, algorithm=0, synchronization=0))

_passed = st.sampled_from([passed_elite("a"), passed_elite("b")])
_selections = st.builds(
    Selection,
    operator=st.sampled_from(list(Operator)),
    parent=st.one_of(st.none(), _passed, st.just(failed_elite("c"))),
    inspirations=st.lists(_passed, max_size=2).map(tuple),
    target=st.sampled_from(_TARGETS),
    island=st.sampled_from(_ISLANDS),
)


@given(
    selections=st.lists(_selections, max_size=12),
    max_chars=st.sampled_from([LEAST_MAX_CHARS, 10**6]),
)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_is_asked_for_the_prompts_differ(
    request_: ProposalRequest, selections: list[Selection], max_chars: int
) -> None:
    """Also where what tells selections apart is left out for want of room."""
    writer, in_flight = PromptWriter(), PromptsInFlight()
    sent = []
    with ExitStack() as waiting:
        for selection in selections:
            request = replace(request_, selection=selection)
            written = waiting.enter_context(
                in_flight.prompt(
                    request.run,
                    lambda rivals, request=request: writer.write(
                        request,
                        expert=expert_of(request.selection.island),
                        rivals=rivals,
                        max_chars=max_chars,
                    ),
                )
            )
            sent.append(written.messages)
    assert len(set(sent)) == len(sent)


def test_an_answered_prompt_may_be_sent_again(request_: ProposalRequest) -> None:
    writer, in_flight = PromptWriter(), PromptsInFlight()

    def prompt(run: str) -> Any:
        return in_flight.prompt(run, lambda rivals: writer.write(request_, rivals=rivals))

    with prompt("r") as first, prompt("other run") as of_another_run:
        assert first == of_another_run
        with prompt("r") as second:
            assert second != first
    with prompt("r") as again:
        assert again == first


def test_templates_that_do_not_mention_rivals_end_the_search_for_another(
    request_: ProposalRequest,
) -> None:
    written, in_flight = PromptWriter().write(request_), PromptsInFlight()
    with in_flight.prompt("r", lambda _: written), in_flight.prompt("r", lambda _: written):
        pass
    with in_flight.prompt("r", lambda _: written) as again:
        assert again == written


async def test_the_generator_sends_different_prompts(
    request_: ProposalRequest, samples: Samples, make_generator: Any
) -> None:
    generator, models = make_generator([])
    arrived, go_on = asyncio.Semaphore(0), asyncio.Event()
    asked: Counter[str] = Counter()

    async def complete(request: ModelRequest) -> ModelReply:
        asked["\n".join(message.content for message in request.messages)] += 1
        arrived.release()
        await go_on.wait()
        return reply(samples.REPLY)

    models.complete = complete
    seeds = [
        replace(request_, selection=Selection(operator=Operator.SEED, sequence=n)) for n in range(6)
    ]
    waiting = [asyncio.create_task(generator.propose(request)) for request in seeds]
    for _ in seeds:
        await arrived.acquire()
    assert len(asked) == len(seeds)
    assert set(asked.values()) == {1}
    go_on.set()
    await asyncio.gather(*waiting)
    await generator.close()
