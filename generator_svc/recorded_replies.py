"""A run's recorded replies, made into proposals again for the selections that they answer.

Asks no model: what `generator` makes of a reply is made of the recorded one. The search that
selects again is in `archive_svc`, the comparison in `kernel_foundry.sdk.replay`.
"""

from collections import defaultdict
from collections.abc import Iterable

from generator_svc.replies.reading import proposal_of, source_of
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.exchange import Exchange, ExchangePurpose
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import Proposal, TokenUsage


class RecordedReplies:
    """Answers the selections of one run from its exchanges.

    Args:
        language: Of the run's kernels.
        exchanges: All of the run, in order.
    """

    def __init__(self, language: Language, exchanges: Iterable[Exchange]) -> None:
        self._language = language
        self._conversations: defaultdict[int, list[list[Exchange]]] = defaultdict(list)
        """By selection; several where it was asked for again, or another run had the name."""
        for exchange in exchanges:
            if exchange.purpose is ExchangePurpose.PROPOSAL and exchange.selection is not None:
                conversations = self._conversations[exchange.selection]
                if exchange.attempt == 0 or not conversations:
                    conversations.append([])
                conversations[-1].append(exchange)

    def proposals(self, selection: Selection) -> tuple[Proposal, ...]:
        """Return what was proposed for a selection, one for each time that it was asked for."""
        conversations = self._conversations.get(selection.sequence, [])
        return tuple(self._proposal(selection, exchanges) for exchanges in conversations)

    def _proposal(self, selection: Selection, exchanges: list[Exchange]) -> Proposal:
        usage: tuple[TokenUsage, ...] = ()
        failure = ""
        for exchange in exchanges:
            usage = (*usage, exchange.usage)
            source, failure = source_of(selection, self._language, exchange.reply, exchange.finish)
            if source is not None:
                return proposal_of(selection, source, exchange.messages, usage)
        return Proposal(candidate=None, reply=exchanges[-1].reply, failure=failure, usage=usage)
