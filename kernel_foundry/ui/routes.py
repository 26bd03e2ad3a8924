"""What the page asks for: its own files, runs and their parts as JSON, and events."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from http import HTTPStatus
from typing import Any, Final

from kernel_foundry.bounded_json import parse_json
from kernel_foundry.domain.archive import Run
from kernel_foundry.domain.run_name import check_run_name
from kernel_foundry.domain.steering import Steering, SteeringAction
from kernel_foundry.errors import InvalidArgumentError, KernelFoundryError, StatusCode
from kernel_foundry.paths import suites_path
from kernel_foundry.sdk.archive_pages import all_runs
from kernel_foundry.sdk.loop.promotion import winner
from kernel_foundry.sdk.report.exchange_index import ExchangeIndex
from kernel_foundry.sdk.report.page import page_files
from kernel_foundry.sdk.report.page_objects import (
    account_answer_object,
    detail_object,
    exchange_object,
    head_object,
    page_json,
    sweep_object,
)
from kernel_foundry.sdk.report.suite_report import suite_page
from kernel_foundry.sdk.run_account import AccountAnswer, failed_account
from kernel_foundry.sdk.run_objects import run_object
from kernel_foundry.sdk.services import Directory
from kernel_foundry.sdk.steering import steer_run, steering_events, steering_object, steering_of
from kernel_foundry.sdk.suite.results import results_of
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.suite.tables import listed_suite_object
from kernel_foundry.sdk.sweep_files import sweep_paths
from kernel_foundry.ui.http import Request, Response
from kernel_foundry.ui.run_feed import FeedEvent, RunFeed

_JSON: Final = "application/json"
_RETRY_MS: Final = 3000
"""When a browser asks again for the events of a run that has ended or was cut off."""

_MOST_IDLE: Final = 8
"""Runs whose rows stay in memory while nobody reads them, those opened last."""

_STATUS: Final = {
    StatusCode.INVALID_ARGUMENT: HTTPStatus.BAD_REQUEST,
    StatusCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    StatusCode.RESOURCE_EXHAUSTED: HTTPStatus.TOO_MANY_REQUESTS,
    StatusCode.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""Of our errors; others are 500."""


class Routes:
    """Answers requests that may be answered."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._files = page_files()
        self._feeds: dict[tuple[str, float], RunFeed] = {}
        self._exchange_indexes: dict[tuple[str, float], ExchangeIndex] = {}

    async def answer(self, request: Request) -> Response:
        """Return the answer to a request."""
        try:
            if request.method == "POST":
                return await self._changed(request)
            match request.path:
                case ():
                    return self._file("index.html")
                case ("page", name):
                    return self._file(name)
                case ("api", "runs"):
                    return _json(await self._runs())
                case ("api", "suites"):
                    return _json(await asyncio.to_thread(_suites))
                case ("api", "suites", name):
                    check_run_name(name)
                    return _json(await self._suite(name))
                case ("api", "runs", name, *rest):
                    check_run_name(name)
                    return await self._of_run(name, tuple(rest), request)
        except KernelFoundryError as error:
            return _text(_STATUS.get(error.code, HTTPStatus.INTERNAL_SERVER_ERROR), str(error))
        return _text(HTTPStatus.NOT_FOUND, "no such page")

    async def _changed(self, request: Request) -> Response:
        match request.path:
            case ("api", "runs", name, "steering"):
                check_run_name(name)
                return _json(await self._steer(name, request.body))
        return _text(HTTPStatus.NOT_FOUND, "no such page")

    async def close(self) -> None:
        """Follow no run any more."""
        for feed in self._feeds.values():
            await feed.close()

    def _file(self, name: str) -> Response:
        found = self._files.get(name)
        if found is None:
            return _text(HTTPStatus.NOT_FOUND, "no such page")
        return Response(content_type=found.content_type, body=found.text.encode())

    async def _runs(self) -> list[dict[str, Any]]:
        archive = await self._directory.archive()
        return [run_object(run) async for run in all_runs(archive)]

    async def _suite(self, name: str) -> dict[str, Any]:
        suite = await asyncio.to_thread(_find_suite, name)
        return suite_page(suite, await results_of(await self._directory.archive(), suite))

    async def _of_run(self, name: str, rest: tuple[str, ...], request: Request) -> Response:
        match rest:
            case ():
                return _json(await self._head(name))
            case ("account",):
                return _json(account_answer_object(await self._account(name)))
            case ("events",):
                return await self._events(name, request)
            case ("evaluations", number):
                return _json(await self._evaluation(name, _number(number)))
            case ("exchanges", selection):
                return _json(await self._exchanges(name, _number(selection)))
            case ("steering",):
                return _json(await self._steering(name))
            case ("sweeps", sweep):
                return _json(_sweep(name, sweep))
        return _text(HTTPStatus.NOT_FOUND, "no such page")

    async def _head(self, name: str) -> dict[str, Any]:
        archive = await self._directory.archive()
        return head_object(
            await archive.get_run(name),
            await archive.stats(name),
            await winner(archive, name),
            sweeps=tuple(path.stem for path in sweep_paths(name)),
            steering=await steering_events(archive, name),
        )

    async def _steering(self, name: str) -> dict[str, Any]:
        archive = await self._directory.archive()
        await archive.get_run(name)
        return steering_object(await steering_events(archive, name))

    async def _steer(self, name: str, body: bytes) -> dict[str, Any]:
        await steer_run(self._directory, name, _asked(body))
        return await self._steering(name)

    async def _account(self, name: str) -> AccountAnswer:
        try:
            generator = await self._directory.generator()
            return AccountAnswer(account=await generator.account(name))
        except KernelFoundryError as error:
            return failed_account(error)

    async def _events(self, name: str, request: Request) -> Response:
        archive = await self._directory.archive()
        run = await archive.get_run(name)
        feed = self._feeds.pop(_key(run), None) or RunFeed(archive, name)
        for key in [key for key, other in self._feeds.items() if not other.is_read][:-_MOST_IDLE]:
            del self._feeds[key]
        self._feeds[_key(run)] = feed
        # A browser that was cut off says what it has, in a header of its own.
        after = request.headers.get("last-event-id") or request.query.get("after", "0")
        return Response(content_type="text/event-stream", stream=_sent(feed.events(_number(after))))

    async def _evaluation(self, name: str, number: int) -> dict[str, Any]:
        archive = await self._directory.archive()
        run = await archive.get_run(name)
        page = await archive.evaluations(name, after=max(number, 1) - 1, limit=1)
        if not page or page[0].sequence != number:
            raise InvalidArgumentError(f"run {name} has no evaluation {number}", field="number")
        return detail_object(page[0], run.spec.task.name)

    async def _exchanges(self, name: str, selection: int) -> list[dict[str, Any]]:
        archive = await self._directory.archive()
        run = await archive.get_run(name)
        index = self._exchange_indexes.setdefault(_key(run), ExchangeIndex(name))
        found = await index.of_selection(await self._directory.generator(), selection)
        return [exchange_object(exchange) for exchange in found]


def _key(run: Run) -> tuple[str, float]:
    """A run for as long as it is there: its name may be another one's later."""
    return run.spec.name, run.created_unix_s


async def _sent(events: AsyncGenerator[FeedEvent, None]) -> AsyncGenerator[bytes, None]:
    """The events in the form of server-sent events; an error of ours ends them with words."""
    yield f"retry: {_RETRY_MS}\n\n".encode()
    try:
        async with aclosing(events):
            async for event in events:
                yield _message(event)
    except KernelFoundryError as error:
        yield f"event: failure\ndata: {page_json(str(error))}\n\n".encode()


def _message(event: FeedEvent) -> bytes:
    if event.rows:
        return f"id: {event.sequence}\nevent: rows\ndata: [{','.join(event.rows)}]\n\n".encode()
    if event.state is not None:
        return f"event: state\ndata: {json.dumps(event.state.value)}\n\n".encode()
    return b":\n\n"


def _sweep(run: str, name: str) -> list[dict[str, Any]]:
    for path in sweep_paths(run):
        if path.stem == name:
            return sweep_object(json.loads(path.read_text(encoding="utf-8")))
    raise InvalidArgumentError(f"run {run} has no landscape {name}", field="sweep")


def _suites() -> list[dict[str, Any]]:
    with closing(SuiteStore(suites_path())) as store:
        return [listed_suite_object(store.find(name)) for name in store.names()]


def _find_suite(name: str) -> Suite:
    with closing(SuiteStore(suites_path())) as store:
        return store.find(name)


def _asked(body: bytes) -> Steering:
    """What a body of JSON asks: `action` and its `text`, `cell` or `candidate`."""
    try:
        data = parse_json(body)
        action = SteeringAction(data["action"])
        given = {name: data.get(name, "") for name in ("text", "cell", "candidate")}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(f"no steering: {error}", field="action") from error
    if not all(isinstance(value, str) for value in given.values()):
        raise InvalidArgumentError("no steering: expected texts", field="text")
    return steering_of(action, **given)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidArgumentError(f"{text[:20]!r}: expected a number", field="number")
    return int(text)


def _json(value: Any) -> Response:
    return Response(content_type=_JSON, body=page_json(value).encode())


def _text(status: HTTPStatus, text: str) -> Response:
    return Response(status=status, body=f"{text}\n".encode())
