"""The journal: what was selected and dropped before each one, so that a run can be made again."""

import gzip
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from archive_svc.archive import LocalArchive
from archive_svc.run.journal import (
    MOST_EVENTS,
    Journal,
    JournalAct,
    JournalEvent,
    is_journal,
    read_journal,
)
from archive_svc.run.run_file import export_run, import_run
from archive_svc.store.store import Store
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.errors import CorruptArchiveError, InvalidArgumentError, StoreUnavailableError

Make = Callable[..., tuple[Candidate, Evaluation]]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'runs.db'}"


@pytest.fixture
async def archive(url: str, spec: RunSpec) -> AsyncIterator[LocalArchive]:
    opened = LocalArchive(url)
    await opened.create_run(spec)
    yield opened
    await opened.close()


async def journals(archive: LocalArchive) -> list[str]:
    return [archived.journal for archived in await archive.evaluations("first")]


async def test_each_evaluation_takes_along_what_happened_before_it(
    archive: LocalArchive, url: str, make: Make
) -> None:
    for _ in range(2):
        await archive.select("first")
    await archive.add("first", *make("a", median_ns=500.0), request_id="1", selection=0)
    await archive.select("first")
    await archive.drop_selection("first", 1)
    await archive.add("first", *make("b", median_ns=400.0), request_id="2", selection=2)
    await archive.add("first", *make("b", median_ns=410.0), request_id="3")
    again = LocalArchive(url)
    await again.select("first")
    await again.add("first", *make("c", median_ns=450.0), request_id="4", selection=32)
    assert await journals(again) == ["@0 s0 s1", "@0 s2 d1", "@0", "@3 s32"]
    await again.close()


async def test_a_selection_by_another_strategy_says_so(archive: LocalArchive, make: Make) -> None:
    await archive.select("first", strategy="best_of_n")
    await archive.add("first", *make("a", median_ns=500.0), request_id="1", selection=0)
    await archive.select("first", strategy=(await archive.get_run("first")).spec.strategy)
    await archive.add("first", *make("b", median_ns=400.0), request_id="2", selection=1)
    assert await journals(archive) == ["@0 s0=best_of_n", "@0 s1"]
    first = read_journal("@0 s0=best_of_n").events[0]
    assert first == JournalEvent(act=JournalAct.MADE, number=0, strategy="best_of_n")
    with pytest.raises(InvalidArgumentError, match="no_such"):
        await archive.select("first", strategy="no_such")


async def test_what_changed_nothing_is_not_noted(archive: LocalArchive, make: Make) -> None:
    await archive.select("first")
    archived = make("a", median_ns=500.0)
    await archive.drop_selection("first", 7)  # never made
    await archive.add("first", *archived, request_id="1", selection=0)
    await archive.drop_selection("first", 0)  # answered already
    await archive.select("first")
    await archive.add("first", *archived, request_id="1", selection=0)  # a repeat
    await archive.add("first", *make("b", median_ns=400.0), request_id="2", selection=1)
    assert await journals(archive) == ["@0 s0", "@0 s1"]


async def test_an_addition_that_failed_before_it_was_stored_loses_nothing(
    archive: LocalArchive, make: Make
) -> None:
    await archive.select("first")
    archived = make("a", median_ns=500.0)
    with (
        patch.object(Store, "add", side_effect=StoreUnavailableError("full")),
        pytest.raises(StoreUnavailableError),
    ):
        await archive.add("first", *archived, request_id="1", selection=0)
    await archive.add("first", *archived, request_id="1", selection=0)
    assert await journals(archive) == ["@0 s0"]


@pytest.mark.parametrize("is_judged_again", [True, False])
async def test_an_addition_that_failed_after_it_was_stored_is_noted_once(
    archive: LocalArchive, make: Make, *, is_judged_again: bool
) -> None:
    for _ in range(2):
        await archive.select("first")
    archived, real = make("a", median_ns=500.0), Store.add

    def lose_the_answer(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        raise StoreUnavailableError("gone")

    with patch.object(Store, "add", lose_the_answer), pytest.raises(StoreUnavailableError):
        await archive.add("first", *archived, request_id="1", selection=0)
    if is_judged_again:
        await archive.add("first", *archived, request_id="1", selection=0)
    await archive.drop_selection("first", 1)
    await archive.add("first", *make("b", median_ns=400.0), request_id="2")
    assert await journals(archive) == ["@0 s0 s1", "@0 d1"]


async def test_an_export_carries_the_journals(
    archive: LocalArchive, url: str, make: Make, tmp_path: Path
) -> None:
    await archive.select("first")
    await archive.add("first", *make("a", median_ns=500.0), request_id="1", selection=0)
    copy = f"sqlite:///{tmp_path / 'copy.db'}"
    export_run(url, "first", tmp_path / "first.gz")
    import_run(copy, tmp_path / "first.gz")
    opened = LocalArchive(copy)
    assert await journals(opened) == ["@0 s0"]
    await opened.close()


@pytest.mark.parametrize("journal", [None, "@0 x1", 7])
async def test_a_file_with_another_text_for_a_journal_is_refused(
    archive: LocalArchive, url: str, make: Make, tmp_path: Path, journal: object
) -> None:
    await archive.add("first", *make("a", median_ns=500.0), request_id="1")
    export_run(url, "first", tmp_path / "first.gz")
    head, line = gzip.decompress((tmp_path / "first.gz").read_bytes()).splitlines()
    data = json.loads(line)
    del data["journal"]
    if journal is not None:
        data["journal"] = journal
    text = head + b"\n" + json.dumps(data).encode() + b"\n"
    (tmp_path / "first.gz").write_bytes(gzip.compress(text))
    copy = f"sqlite:///{tmp_path / 'copy.db'}"
    with pytest.raises(CorruptArchiveError):
        import_run(copy, tmp_path / "first.gz")


def test_a_journal_is_read_as_it_was_written() -> None:
    journal = Journal(opened_at=17)
    journal.made(32)
    journal.dropped(32)
    assert is_journal(journal.text)
    entry = read_journal(journal.text)
    assert (entry.opened_at, entry.is_whole) == (17, True)
    assert entry.events == (
        JournalEvent(act=JournalAct.MADE, number=32),
        JournalEvent(act=JournalAct.DROPPED, number=32),
    )


def test_a_journal_that_grows_without_end_is_given_up() -> None:
    journal = Journal(opened_at=0)
    for number in range(MOST_EVENTS + 10):
        journal.made(number)
    text = journal.text
    assert is_journal(text)
    assert not read_journal(text).is_whole
    journal.forget(text)
    assert journal.text == "@0"
