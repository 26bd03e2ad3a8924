"""A run's ledger: nothing that was paid is missing, whoever writes and whoever stops waiting."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator_svc.exchange_log import ExchangeLog
from generator_svc.ledger import RequestCounter, RunLedger
from generator_svc.llm.litellm_models import LiteLlmModels
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.exchange import ChatMessage, Exchange, FinishReason
from kernel_foundry.domain.request import ProposalRequest, TokenUsage
from kernel_foundry.errors import InvalidArgumentError
from tests.generators import generator_in
from tests.llm_server import Answer, LlmServer, ReceivedRequest, hang

_EXCHANGE = Exchange(
    run="r",
    asked="m",
    seed=1,
    messages=(ChatMessage(role="user", content="prompt"),),
    reply="text",
    finish=FinishReason.STOP,
    usage=TokenUsage(model="m", input_tokens=1, output_tokens=2, cost_usd=0.5, latency_ms=3.0),
    recorded_unix_s=10.0,
)
_CALLS = 10


def test_several_generators_keep_the_books_of_one_run(store_url: str, tmp_path: Path) -> None:
    """Every exchange gets a number of its own, and every sum is right."""
    ready = threading.Barrier(2)

    async def enter_all(writer: int) -> None:
        store = GeneratorStore(store_url)
        ledger = RunLedger(store, ExchangeLog(tmp_path / "exchanges"))
        await ledger.check_owner("r", is_proposal=True)
        ready.wait(timeout=30.0)
        for call in range(_CALLS):
            counter = RequestCounter()
            counter("m", is_retry=False)
            await ledger.record(replace(_EXCHANGE, reply=f"{writer}/{call}"), counter)
        await store.close()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda writer: asyncio.run(enter_all(writer)), range(2)))

    async def read() -> None:
        store = GeneratorStore(store_url)
        ledger = RunLedger(store, ExchangeLog(tmp_path / "exchanges"))
        found = await ledger.exchanges("r", after=0, limit=100)
        assert [e.sequence for e in found] == list(range(1, 2 * _CALLS + 1))
        (spend,) = (await ledger.account("r")).spend
        assert (spend.requests, spend.prompt_tokens) == (2 * _CALLS, 2 * _CALLS)
        await store.close()

    asyncio.run(read())


async def test_a_page_of_large_exchanges_has_fewer(tmp_path: Path) -> None:
    """It has to fit into a message; none is left out."""
    store = GeneratorStore(f"sqlite:///{tmp_path / 'generator.db'}")
    ledger = RunLedger(store, ExchangeLog(tmp_path / "exchanges"))
    await ledger.check_owner("r", is_proposal=True)
    for letter in "abcd":
        await ledger.record(replace(_EXCHANGE, reply=letter * 3_000_000), RequestCounter())
    pages, after = [], 0
    while page := await ledger.exchanges("r", after=after, limit=20):
        pages.append("".join(e.reply[0] for e in page))
        after = page[-1].sequence
    assert pages == ["ab", "cd"]
    await store.close()


async def test_a_paid_reply_is_in_the_books_however_often_its_caller_is_cancelled(
    make_generator: Any, request_: ProposalRequest, samples: Any, exchanges: ExchangeLog
) -> None:
    """A search that ends cancels once, Ctrl-C then once more."""
    generator, _ = make_generator([samples.REPLY])
    recording, go_on = asyncio.Event(), asyncio.Event()
    record = exchanges.record

    async def record_late(exchange: Exchange) -> str:
        recording.set()
        await go_on.wait()
        return await record(exchange)

    exchanges.record = record_late  # type: ignore[method-assign]
    proposing = asyncio.create_task(generator.propose(request_))
    await recording.wait()
    for _ in range(3):
        proposing.cancel()
        await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait({proposing})
    assert proposing.cancelled()
    (spend,) = (await generator.account("r")).spend
    assert spend.prompt_tokens == 100
    assert len(await generator.exchanges("r")) == 1
    await generator.close()


async def test_a_generator_that_closes_enters_what_was_sent(
    llm_server: LlmServer, tmp_path: Path, request_: ProposalRequest
) -> None:
    """As a service that is told to stop while models are still thinking."""
    loop, sent = asyncio.get_running_loop(), asyncio.Event()

    def answer(_: ReceivedRequest) -> Answer:
        loop.call_soon_threadsafe(sent.set)
        return hang()

    llm_server.behaviour = answer
    generator = generator_in(tmp_path, LiteLlmModels())
    asked = replace(request_, models=("openai/gpt-5",))
    proposing = asyncio.create_task(generator.propose(asked))
    await sent.wait()
    await generator.close()
    assert proposing.cancelled()
    again = generator_in(tmp_path, LiteLlmModels())
    (spend,) = (await again.account("r")).spend
    assert spend.requests == 1
    await again.close()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run", "r" * 201),
        ("run", "a\0b"),
        ("models", ("openai/" + "m" * 200,)),
        ("models", ("\0",)),
    ],
)
async def test_what_no_book_can_hold_is_refused_before_it_is_paid(
    make_generator: Any, request_: ProposalRequest, field: str, value: object
) -> None:
    """Not after the reply, by the database."""
    generator, models = make_generator([])
    changes: dict[str, Any] = {field: value}
    with pytest.raises(InvalidArgumentError, match=field):
        await generator.propose(replace(request_, **changes))
    selection = replace(request_.selection, sequence=2**31)
    with pytest.raises(InvalidArgumentError, match="selection"):
        await generator.propose(replace(request_, selection=selection))
    assert models.asked == []
    await generator.close()
