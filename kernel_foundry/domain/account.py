"""The account of a run: its requests to language models, and the results of repairs and lessons."""

from dataclasses import dataclass

from kernel_foundry.domain.finding import FindingKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpend:
    """The requests to one model, and their cost."""

    model: str
    requests: int
    """Every request sent, those that failed too."""
    retries: int
    """Those of the requests that repeat an earlier one of the same call."""
    prompt_tokens: int
    completion_tokens: int
    usd: float
    """By LiteLLM's cost table; 0 for a model that it does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairCount:
    """How repairs of candidates with one kind of finding ended."""

    kind: FindingKind
    attempts: int
    successes: int
    """Attempts whose child passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismCount:
    """How often a mechanism acted in a run's prompts."""

    mechanism: str
    """One of `domain.mechanisms`, or the name of an operator."""
    prompts: int
    """Prompts in which it acted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccount:
    """The generator's books of one run."""

    run: str
    spend: tuple[ModelSpend, ...] = ()
    """By name of the model."""
    repairs: tuple[RepairCount, ...] = ()
    """Most attempts first; a failure with several kinds counts for each."""
    lessons_shown: int = 0
    """Lessons in prompts, each showing counted."""
    lessons_learnt: int = 0
    """Lessons that transitions of this run wrote or confirmed."""
    mechanisms: tuple[MechanismCount, ...] = ()
    """How often each mechanism acted that did; by name."""
