"""Prompts that wait for their reply: no two of a run are the same.

Selections that differ may still give one prompt, as two seeds for one expert do. The later one is
told of the earlier ones, so that its reply is another.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from generator_svc.prompting.writer import WrittenPrompt
from kernel_foundry.domain.exchange import ChatMessage


class PromptsInFlight:
    """The prompts of one generator that were sent and not answered."""

    def __init__(self) -> None:
        self._waiting: set[tuple[str, tuple[ChatMessage, ...]]] = set()

    @contextmanager
    def prompt(self, run: str, write: Callable[[int], WrittenPrompt]) -> Iterator[WrittenPrompt]:
        """Yield a prompt that no other request of the run carries meanwhile.

        Args:
            run: Name of the run.
            write: Writes the prompt for a number of rivals: requests in flight that have it but for
                that number.
        """
        rivals = 0
        written = write(rivals)
        while (run, written.messages) in self._waiting:
            rivals += 1
            another = write(rivals)
            if another == written:
                break  # a user's own template does not mention rivals
            written = another
        key = (run, written.messages)
        self._waiting.add(key)
        try:
            yield written
        finally:
            self._waiting.discard(key)
