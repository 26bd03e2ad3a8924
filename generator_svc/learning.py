"""Learns from verdicts: lessons, guidance in prompts, and which model pays.

Each part has its own package; this file asks them before a proposal and reports to them after its
verdict. A proposal waits for lessons and guidance, but not for the evolution of guidance.
"""

import asyncio
import logging
import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from generator_svc.experience.library import ExperienceLibrary
from generator_svc.experience.query import lesson_query
from generator_svc.experience.structures import concerns, structures_of
from generator_svc.experience.transition import ObservedTransition
from generator_svc.experts import Expert
from generator_svc.held_out import held_out_of
from generator_svc.meta_prompts.population import MetaPrompts
from generator_svc.meta_prompts.records import PromptRecord, prompt_record
from generator_svc.meta_prompts.sections import Sections
from generator_svc.model_choice import ModelOutcome
from generator_svc.prompting.siblings import MOST_SIBLINGS, remark_on
from generator_svc.store import owners, proposals
from generator_svc.store.proposals import ProposalRow, Sibling
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.exchange import ChatMessage
from kernel_foundry.domain.finding import FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson
from kernel_foundry.domain.mechanisms import EXPERIENCE, LESSONS, META_PROMPTS, SIBLINGS
from kernel_foundry.domain.request import ProposalOutcome, ProposalRequest
from kernel_foundry.domain.trick import named_trick

_LOG: Final = logging.getLogger(__name__)

LESSONS_SHOWN: Final = 4
"""Lessons in a prompt, at most."""

_RECALLED: Final = 3 * LESSONS_SHOWN
"""Some are about other operators than the task's, or lead to what is banned."""

_REQUESTS_KEPT: Final = 512
"""Requests kept until their verdict comes. No lesson is written from older ones."""

_RECORDS_KEPT: Final = 200
"""Verdicts of each language, of this process, that an editor of guidance may be shown."""

AskForText = Callable[[ProposalRequest, tuple[ChatMessage, ...]], Awaitable[str]]
"""Asks a model for better guidance, on the account of a request's run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """The parts of a prompt that were learnt: lessons, guidance, and earlier children."""

    lessons: tuple[Lesson, ...] = ()
    sections: Sections | None = None
    """None: those of the package."""
    sections_id: int | None = None
    is_evolved: bool = False
    """Whether a model edited the sections."""
    siblings: tuple[Sibling, ...] = ()
    """Earlier children of the same parent, the oldest first."""


NO_CONTEXT: Final = PromptContext()


class Learner:
    """The parts that learn, on one store.

    Args:
        store: Where proposals and what was learnt are kept.
        library: Lessons.
        meta_prompts: Guidance that evolves.
        ask: Asks for better guidance.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        store: GeneratorStore,
        library: ExperienceLibrary,
        meta_prompts: MetaPrompts,
        ask: AskForText,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._library = library
        self._meta_prompts = meta_prompts
        self._ask = ask
        self._clock = clock
        self._requests: OrderedDict[tuple[str, int], ProposalRequest] = OrderedDict()
        self._records: dict[Language, deque[PromptRecord]] = {}
        self._background: set[asyncio.Task[object]] = set()

    async def context(self, request: ProposalRequest, expert: Expert) -> PromptContext:
        """Return lessons, siblings and sections for a prompt, as far as they are switched on."""
        lessons: tuple[Lesson, ...] = ()
        if EXPERIENCE not in request.without and LESSONS not in request.without:
            query = lesson_query(request, expert)
            tricks = request.selection.banned_tricks
            structures = structures_of(request.admission)
            lessons = tuple(
                lesson
                for lesson in await self._library.recall(query, limit=_RECALLED)
                if (not structures or concerns(lesson, structures))
                and not named_trick(tricks, lesson.symptom, lesson.move, lesson.excerpt)
            )[:LESSONS_SHOWN]
        siblings = () if SIBLINGS in request.without else await self._siblings(request)
        if META_PROMPTS in request.without:
            return PromptContext(lessons=lessons, siblings=siblings)
        chosen = await self._meta_prompts.choose(
            run=request.run,
            language=request.admission.device.language,
            sequence=request.selection.sequence,
            seed=request.seed,
        )
        return PromptContext(
            lessons=lessons,
            sections=chosen.sections,
            sections_id=chosen.id,
            is_evolved=chosen.is_evolved,
            siblings=siblings,
        )

    async def remember(self, request: ProposalRequest, row: ProposalRow) -> None:
        """Remember how a proposal was made until its verdict comes.

        Not of a run that was forgotten meanwhile: its name may be another user's.
        """
        if not await self._store.write(partial(_add_own, row=row)):
            return
        self._requests[request.run, request.selection.sequence] = request
        while len(self._requests) > _REQUESTS_KEPT:
            self._requests.popitem(last=False)

    async def learn(self, outcome: ProposalOutcome) -> ModelOutcome | None:
        """Learn from a verdict; return what it says of the model, None where it is not known here.

        A verdict that was learnt from before is ignored.
        """
        key = (outcome.run, outcome.selection)
        row = await self._store.read(
            partial(proposals.find, run=outcome.run, selection=outcome.selection)
        )
        if row is None or row.outcome is not None:
            return None
        request = self._requests.pop(key, None)
        gain = _gain(row, outcome.evaluation)
        held_out = held_out_of(request.task, request.admission) if request is not None else None
        is_lesson = await self._learn_lessons(outcome, row, request)
        await self._learn_guidance(outcome, row, request, gain)
        is_first = await self._store.write(
            partial(
                _judge_own,
                run=outcome.run,
                selection=outcome.selection,
                outcome=outcome.evaluation.outcome.value,
                gain=gain,
                speedup=outcome.evaluation.speedup,
                remark=remark_on(outcome.evaluation, held_out),
                is_lesson=is_lesson,
                judged_unix_s=self._clock(),
            )
        )
        if not is_first:
            return None
        return ModelOutcome(model=row.model, gain=gain, usd=row.usd, run=row.run)

    async def _siblings(self, request: ProposalRequest) -> tuple[Sibling, ...]:
        parent = request.selection.parent
        digest = parent.candidate.digest if parent is not None else ""
        return await self._store.read(
            partial(proposals.siblings, run=request.run, parent=digest, limit=MOST_SIBLINGS)
        )

    async def close(self) -> None:
        """Stop background work, each piece of it stored whole or not at all; close the library."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._library.close()

    async def _learn_lessons(
        self, outcome: ProposalOutcome, row: ProposalRow, request: ProposalRequest | None
    ) -> bool:
        """Credit the lessons that were shown, and write a new one; return whether there is one."""
        evaluation = outcome.evaluation
        if row.lessons:
            await self._library.credit(
                row.lessons,
                log_speedup=_log_speedup(row, evaluation),
                request_id=_request_id(outcome),
            )
        if request is None or request.selection.parent is None or EXPERIENCE in request.without:
            return False
        added = await self._library.learn(
            ObservedTransition(
                run=outcome.run,
                request=request,
                child=outcome.candidate,
                evaluation=evaluation,
                shown=row.lessons,
            )
        )
        return added is not None

    async def _learn_guidance(
        self,
        outcome: ProposalOutcome,
        row: ProposalRow,
        request: ProposalRequest | None,
        gain: float,
    ) -> None:
        """Credit the sections that were shown; let them evolve when enough is known."""
        if row.sections is None:
            return
        await self._meta_prompts.credit(
            row.sections,
            run=row.run,
            gain=gain,
            outcome=outcome.evaluation.outcome,
            request_id=_request_id(outcome),
        )
        if request is None:
            return
        records = self._records.setdefault(row.language, deque(maxlen=_RECORDS_KEPT))
        records.append(prompt_record(row.sections, request, outcome, gain=gain))
        if await self._meta_prompts.is_due(row.language):
            evolving = self._meta_prompts.evolve(
                row.run, row.language, partial(self._ask, request), tuple(records)
            )
            task = asyncio.create_task(evolving)
            self._background.add(task)
            task.add_done_callback(self._background_ended)

    def _background_ended(self, task: asyncio.Task[object]) -> None:
        """Forget a task; a failure costs new guidance, not the run."""
        self._background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _LOG.error("guidance did not evolve", exc_info=task.exception())


def proposal_row(
    request: ProposalRequest,
    operator: Operator,
    expert: Expert,
    context: PromptContext,
    *,
    shown: tuple[Lesson, ...],
    mechanisms: tuple[str, ...],
    model: str,
    usd: float,
    candidate: str,
    idea: str,
) -> ProposalRow:
    """Return how a proposal was made, as the store keeps it."""
    parent = request.selection.parent
    return ProposalRow(
        run=request.run,
        selection=request.selection.sequence,
        language=request.admission.device.language,
        operator=operator,
        expert=expert.role,
        model=model,
        usd=usd,
        lessons=tuple(lesson.id for lesson in shown),
        mechanisms=mechanisms,
        candidate=candidate,
        idea=idea,
        sections=context.sections_id,
        parent=parent.candidate.digest if parent else "",
        parent_fitness=parent.fitness if parent else None,
        parent_speedup=parent.evaluation.speedup if parent else None,
        parent_findings=_mended(parent.evaluation)
        if parent is not None and operator is Operator.REPAIR
        else (),
    )


def _add_own(connection: sa.Connection, row: ProposalRow) -> bool:
    if not owners.is_own(connection, row.run):
        return False
    proposals.add(connection, row)
    return True


def _judge_own(connection: sa.Connection, run: str, **verdict: Any) -> bool:
    return owners.is_own(connection, run) and proposals.judge(connection, run, **verdict)


def _gain(row: ProposalRow, evaluation: Evaluation) -> float:
    """Return the gain in fitness over the parent; a seed's whole fitness; 0 if worse or failed."""
    if not evaluation.passed:
        return 0.0
    return max(0.0, evaluation.fitness - (row.parent_fitness or 0.0))


def _mended(evaluation: Evaluation) -> tuple[FindingKind, ...]:
    kinds = (f.kind for f in evaluation.findings if f.severity is Severity.ERROR)
    return tuple(dict.fromkeys(kinds))


def _log_speedup(row: ProposalRow, evaluation: Evaluation) -> float | None:
    """Return ln(child over parent); 0 for a pass that has no parent's time, None for no pass."""
    if not evaluation.passed:
        return None
    if not evaluation.speedup or not row.parent_speedup:
        return 0.0
    return math.log(evaluation.speedup / row.parent_speedup)


def _request_id(outcome: ProposalOutcome) -> str:
    return f"{outcome.run}/{outcome.selection}"
