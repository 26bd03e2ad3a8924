"""A run's ledger: every exchange with a model, what it used, and what came of each proposal.

An exchange is a file, its place in the run and what it used are rows; both are on disk before a
call returns.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import sqlalchemy as sa

from generator_svc.caps import Spending
from generator_svc.exchange_log import ExchangeLog
from generator_svc.store import exchanges as calls
from generator_svc.store import owners, proposals
from generator_svc.store.exchanges import CallUsage
from generator_svc.store.store import GeneratorStore
from kernel_foundry.caller import caller, check_owner
from kernel_foundry.domain.account import RunAccount
from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.errors import AlreadyExistsError, InvalidArgumentError

_LOG: Final = logging.getLogger(__name__)

_PAGE_CHARS: Final = 8_000_000
"""Of prompts and replies in one page, unless one exchange alone has more; fits one gRPC message at
any UTF-8 width."""


class RequestCounter:
    """Counts the HTTP requests of one call, by model."""

    def __init__(self) -> None:
        self._requests: defaultdict[str, int] = defaultdict(int)
        self._retries: defaultdict[str, int] = defaultdict(int)

    def __call__(self, model: str, is_retry: bool) -> None:
        """Count a request that is about to be sent."""
        self._requests[model] += 1
        self._retries[model] += is_retry

    def usage(self) -> dict[str, CallUsage]:
        """Return what was counted, by name of the model."""
        return {
            model: CallUsage(requests=count, retries=self._retries[model])
            for model, count in self._requests.items()
        }


class RunLedger:
    """The ledger of all runs of a generator."""

    def __init__(self, store: GeneratorStore, log: ExchangeLog) -> None:
        self._store = store
        self._log = log

    async def record(self, exchange: Exchange, counter: RequestCounter) -> None:
        """Record an exchange and what it used, of a run that is the caller's still.

        Raises:
            StoreUnavailableError: folder or store cannot be written.
        """
        name = await self._log.record(exchange)
        usage = counter.usage()
        reported = exchange.usage
        if usage or reported.input_tokens or reported.output_tokens:
            usage[reported.model] = replace(
                usage.get(reported.model, CallUsage()),
                prompt_tokens=reported.input_tokens,
                completion_tokens=reported.output_tokens,
                usd=reported.cost_usd,
            )
        await self._enter(exchange.run, name, usage)

    async def record_failure(self, run: str, counter: RequestCounter) -> None:
        """Record a call that no model answered: its requests were sent all the same."""
        usage = counter.usage()
        if usage:
            await self._enter(run, None, usage)

    async def is_own(self, run: str) -> bool:
        """Return whether a run was begun, not forgotten since, and the caller may change it."""
        return await self._store.write(partial(owners.is_own, run=run))

    async def spent(self, run: str) -> Spending:
        """Return what a run has spent on all models."""
        spend = await self._store.read(partial(calls.spend, run=run))
        return Spending(
            cost_usd=sum(s.usd for s in spend),
            tokens=sum(s.prompt_tokens + s.completion_tokens for s in spend),
        )

    async def account(self, run: str) -> RunAccount:
        """Return what a run has used and learnt so far."""
        return await self._store.read(partial(_account, run=run))

    async def check_owner(self, run: str, *, is_proposal: bool = False) -> None:
        """Refuse a run that is not the caller's; a new one is, from its first proposal on.

        Raises:
            PermissionDeniedError: it is another user's, or nobody's.
        """
        await self._store.write(partial(_check_owner, run=run, is_proposal=is_proposal))

    async def forget(self, run: str) -> None:
        """Remove a run's rows, and the exchanges that no other run has made.

        Raises:
            PermissionDeniedError: the run is not the caller's.
        """
        names = await self._store.write(partial(_forget, run=run))
        await self._log.remove(names)

    async def rename(self, run: str, new_name: str) -> None:
        """Keep a run's rows under another name.

        Raises:
            AlreadyExistsError: there are rows of that name, or somebody has begun a run of it.
            PermissionDeniedError: the run is not the caller's.
        """
        await self._store.write(partial(_rename, run=run, new_name=new_name))

    async def exchanges(self, run: str, *, after: int, limit: int) -> tuple[Exchange, ...]:
        """Return up to `limit` exchanges of a run with a sequence above `after`, in order.

        Fewer where a page would be too long; never none where there are some.

        Raises:
            InvalidArgumentError: `after` or `limit` cannot be.
            CorruptArchiveError: a recorded one is damaged or gone.
        """
        if after < 0 or limit < 1:
            raise InvalidArgumentError(
                f"{limit} exchanges after {after}: expected 1 or more after 0 or more",
                field="limit" if limit < 1 else "after",
            )
        names = await self._store.read(
            partial(calls.exchange_names, run=run, after=after, limit=limit)
        )
        found: list[Exchange] = []
        size = 0
        for sequence, name in names:
            exchange = replace(await self._log.named(name), sequence=sequence, run=run)
            size += len(exchange.reply) + sum(len(m.content) for m in exchange.messages)
            if found and size > _PAGE_CHARS:
                break
            found.append(exchange)
        return tuple(found)

    async def _enter(self, run: str, name: str | None, usage: Mapping[str, CallUsage]) -> None:
        """Enter a call, unless its run was forgotten or is another user's by now."""
        unwanted = await self._store.write(partial(_enter, run=run, name=name, usage=usage))
        if unwanted is not None:
            _LOG.warning("a call of run %s is in no ledger: the run was forgotten meanwhile", run)
            await self._log.remove(unwanted)


def _enter(
    connection: sa.Connection, run: str, name: str | None, usage: Mapping[str, CallUsage]
) -> tuple[str, ...] | None:
    """Add a call to its run; else return the files that no run has, for a run that is gone."""
    if owners.is_own(connection, run):
        calls.add_call(connection, run, name=name, usage=usage)
        return None
    return () if name is None or calls.is_recorded(connection, name) else (name,)


def _check_owner(connection: sa.Connection, run: str, *, is_proposal: bool = False) -> None:
    whose = owners.claim(connection, run, caller().name, is_proposal=is_proposal)
    check_owner(run, whose)


def _forget(connection: sa.Connection, run: str) -> tuple[str, ...]:
    """Forget a run; return the names of the exchanges that no other run made."""
    _check_owner(connection, run)
    proposals.forget(connection, run)
    owners.forget(connection, run)
    return calls.forget(connection, run)


def _rename(connection: sa.Connection, run: str, new_name: str) -> None:
    _check_owner(connection, run)  # nobody else writes from here on, and begins the new name
    if any(kept.is_known(connection, new_name) for kept in (calls, proposals, owners)):
        raise AlreadyExistsError(f"something is kept of a run {new_name} here", run=new_name)
    calls.rename(connection, run, new_name)
    proposals.rename(connection, run, new_name)
    owners.rename(connection, run, new_name)


def _account(connection: sa.Connection, run: str) -> RunAccount:
    shown, learnt = proposals.lesson_counts(connection, run)
    return RunAccount(
        run=run,
        spend=calls.spend(connection, run),
        repairs=proposals.repairs(connection, run),
        lessons_shown=shown,
        lessons_learnt=learnt,
        mechanisms=proposals.mechanism_counts(connection, run),
    )
