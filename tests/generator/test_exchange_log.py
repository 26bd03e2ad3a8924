"""Stored exchanges: whole or absent, found by prompt, never silently lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from generator_svc.exchange_log import ExchangeLog
from kernel_foundry.domain.exchange import ChatMessage, Exchange, FinishReason, prompt_digest
from kernel_foundry.domain.request import TokenUsage
from kernel_foundry.errors import CorruptArchiveError, StoreUnavailableError

_EXCHANGE = Exchange(
    run="r",
    asked="m",
    seed=1,
    messages=(ChatMessage(role="user", content="prompt"),),
    reply="first",
    finish=FinishReason.STOP,
    usage=TokenUsage(model="m", input_tokens=1, output_tokens=2, cost_usd=0.5, latency_ms=3.0),
    recorded_unix_s=10.0,
)
_DIGEST = prompt_digest(_EXCHANGE.messages)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_replies_to_one_prompt_come_oldest_first(tmp_path: Path) -> None:
    """A prompt may be asked often; each reply is kept."""
    log = ExchangeLog(tmp_path)
    later = replace(_EXCHANGE, reply="second", recorded_unix_s=20.0)
    other = replace(_EXCHANGE, messages=(ChatMessage(role="user", content="another"),))
    for exchange in (later, _EXCHANGE, other):
        await log.record(exchange)
    assert await log.replies(_DIGEST) == (_EXCHANGE, later)


async def test_the_same_exchange_is_one_file(tmp_path: Path) -> None:
    """Recording is idempotent and leaves no temporary file behind."""
    log = ExchangeLog(tmp_path)
    await log.record(_EXCHANGE)
    await log.record(_EXCHANGE)
    (file,) = _files(tmp_path)
    assert file.name.startswith(_DIGEST)


async def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """A paid reply that cannot be stored is not passed over."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailableError, match="cannot store"):
        await ExchangeLog(tmp_path / "file").record(_EXCHANGE)


async def test_a_file_that_is_no_exchange_is_an_error(tmp_path: Path) -> None:
    """Damage is reported with the file's name."""
    log = ExchangeLog(tmp_path)
    await log.record(_EXCHANGE)
    (file,) = _files(tmp_path)
    file.write_text("{}")
    with pytest.raises(CorruptArchiveError, match=file.name):
        await log.replies(_DIGEST)
