"""What a replay asks of the archive and of the generator; their packages have one of each."""

from collections.abc import Iterator
from typing import Protocol

from kernel_foundry.domain.archive import RunSpec, Selection, ToldEvaluation
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.request import Proposal


class Prepared(Protocol):
    """What the archive did before one tell."""

    @property
    def selections(self) -> tuple[Selection, ...]:
        """Selections made, in order."""
        ...

    @property
    def dropped(self) -> tuple[int, ...]:
        """Numbers of selections dropped."""
        ...

    @property
    def is_reopened(self) -> bool:
        """Whether the archive was opened anew: what was in flight is not known any more."""
        ...


class Rerun(Protocol):
    """A recorded run and its repetition; see `archive_svc.rerun`."""

    @property
    def spec(self) -> RunSpec:
        """What the run was asked to do."""
        ...

    def recorded(self) -> Iterator[ToldEvaluation]:
        """Yield what was told, in order; each is prepared and told before the next is taken."""
        ...

    def prepare(self, told: ToldEvaluation) -> Prepared:
        """Select and drop as the archive did before it was told `told`.

        Raises:
            InvalidArgumentError: what it did is not known; it says why.
        """
        ...

    def tell(self, told: ToldEvaluation, candidate: Candidate) -> ToldEvaluation:
        """Tell `candidate` with the recorded verdict; return what is stored then."""
        ...


class Replies(Protocol):
    """The recorded replies of the run; see `generator_svc.replaying_generator`."""

    def proposals(self, selection: Selection) -> tuple[Proposal, ...]:
        """Return what was proposed for a selection, one for each time that it was asked for."""
        ...

    def sources(self, selection: int, parent: KernelSource | None) -> tuple[KernelSource, ...]:
        """Return what the replies to a selection hold, were they changes of `parent`."""
        ...
