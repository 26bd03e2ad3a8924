"""Makes a recorded run again, evaluation by evaluation.

The archive's own search selects in the recorded order, the recorded replies become candidates
again, and what was measured is told as it was. Whatever comes out otherwise than it was recorded
ends the replay. Knows archive and generator only as `parts`.
"""

from dataclasses import dataclass, fields
from typing import Final

from kernel_foundry.domain.archive import Selection, ToldEvaluation
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.sdk.loop.evolution import candidate_of
from kernel_foundry.sdk.replay.difference import DifferenceError, check_equal
from kernel_foundry.sdk.replay.parts import Replies, Rerun

_COMPARED: Final = ("operator", "parents", "digest", "generation", "model", "prompt_digest")
"""Of a candidate; what explains the others first."""

_NO_REPLY: Final = "no recorded reply"


@dataclass(slots=True, kw_only=True)
class ReplayCounts:
    """What was done again."""

    told: int = 0
    selections: int = 0
    dropped: int = 0
    remade: int = 0
    """Candidates made from recorded replies to selections that were made again."""
    told_again: int = 0
    """Verdicts on a candidate that was told before, as of a sweep or a promotion."""
    by_hand: int = 0
    """Candidates that nobody had asked for: taken as recorded."""
    unselected: int = 0
    """Candidates whose selections were lost with a process that ended: their sources come from
    the recorded replies, the rest is taken as recorded."""
    restarts: int = 0


def replay_run(rerun: Rerun, replies: Replies) -> ReplayCounts:
    """Make a run again.

    Raises:
        DifferenceError: something came out otherwise than it was recorded.
        InvalidArgumentError: how the run was made is not known.
    """
    return _Replay(rerun, replies).run()


class _Replay:
    """One repetition under way."""

    def __init__(self, rerun: Rerun, replies: Replies) -> None:
        self._rerun = rerun
        self._replies = replies
        self._made: dict[int, Selection] = {}
        """Selections that were neither told nor dropped yet, by number."""
        self._known: dict[str, Candidate] = {}
        """Candidates told, by digest."""
        self._replayed = ReplayCounts()

    def run(self) -> ReplayCounts:
        """Make the run again."""
        for told in self._rerun.recorded():
            self._prepare(told)
            candidate = self._candidate(told)
            self._known.setdefault(candidate.digest, candidate)
            again = self._rerun.tell(told, candidate)
            for field in fields(ToldEvaluation):
                _check(told, field.name, told, again)
            self._replayed.told += 1
        return self._replayed

    def _prepare(self, told: ToldEvaluation) -> None:
        prepared = self._rerun.prepare(told)
        if prepared.is_reopened:
            self._made.clear()
            self._replayed.restarts += 1
        self._made.update((s.sequence, s) for s in prepared.selections)
        for number in prepared.dropped:
            self._made.pop(number, None)
        self._replayed.selections += len(prepared.selections)
        self._replayed.dropped += len(prepared.dropped)

    def _candidate(self, told: ToldEvaluation) -> Candidate:
        """The candidate that was told, made again as far as it can be."""
        if told.selection is None:
            return self._told_before_or_by_hand(told)
        selection = self._made.pop(told.selection, None)
        if selection is None:
            return self._unselected(told, told.selection)
        language = self._rerun.spec.language
        proposals = self._replies.proposals(selection)
        candidates = [candidate_of(proposal, selection, language) for proposal in proposals]
        if not candidates:
            raise _no_such_source(told, _NO_REPLY)
        self._replayed.remade += 1
        if told.candidate not in candidates:
            for name in _COMPARED:
                _check(told, name, told.candidate, candidates[-1])
        return told.candidate

    def _unselected(self, told: ToldEvaluation, selection: int) -> Candidate:
        recorded = told.candidate
        # A combination is no change of its parent, and tells of only one where it failed.
        parent = self._known.get(recorded.parents[0]) if recorded.parents else None
        sources = self._replies.sources(selection, None)
        if parent is not None:
            sources += self._replies.sources(selection, parent.source)
        if recorded.source not in sources:
            raise _no_such_source(told, ", ".join(s.digest for s in sources) or _NO_REPLY)
        self._replayed.unselected += 1
        return recorded

    def _told_before_or_by_hand(self, told: ToldEvaluation) -> Candidate:
        known = self._known.get(told.candidate.digest)
        if known is None:
            self._replayed.by_hand += 1
            return told.candidate
        self._replayed.told_again += 1
        for name in _COMPARED:
            _check(told, name, told.candidate, known)
        return known


def _check(told: ToldEvaluation, what: str, recorded: object, replayed: object) -> None:
    check_equal(
        _where(told), what, recorded=getattr(recorded, what), replayed=getattr(replayed, what)
    )


def _no_such_source(told: ToldEvaluation, replayed: str) -> DifferenceError:
    recorded = told.candidate.digest
    return DifferenceError(_where(told), "digest", recorded=recorded, replayed=replayed)


def _where(told: ToldEvaluation) -> str:
    answered = "" if told.selection is None else f" (selection {told.selection})"
    return f"evaluation {told.sequence}{answered}"
