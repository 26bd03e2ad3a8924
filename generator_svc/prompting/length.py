"""Bounds a prompt: what is left out, in which order, when it would be too long.

Rules, the plan language, the findings of a repair and the form of the reply are never left out.
Reference, user's instructions and name table lose their middle when nothing else can go. Code that
is to be edited loses whole functions last of all, first those that no finding points at.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from generator_svc.markdown import clip
from generator_svc.prompting.candidate_view import CandidateView, source_text
from generator_svc.prompting.parts import PromptParts
from kernel_foundry.domain.candidate import Operator

CHARS_PER_TOKEN: Final = 3
"""Characters of a token of source text, lower bound."""

DEFAULT_MAX_CHARS: Final = 24_000 * CHARS_PER_TOKEN
"""Length of a whole prompt; models attend to much less than fits into their context."""

LEAST_MAX_CHARS: Final = 12_000 * CHARS_PER_TOKEN
"""Mandatory parts fit in this."""

_SHORT_LOG_CHARS: Final = 800
_FEW_FINDINGS: Final = 4
_LEAST_TEXT_CHARS: Final = 800
"""Characters that reference, instructions and name table keep at least, each."""
_LEAST_CODE_CHARS: Final = 2_000
_NOTE_CHARS: Final = 120
"""Characters of the note that code is not shown whole."""

T = TypeVar("T")
Take = Callable[[PromptParts], PromptParts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One thing to leave out."""

    name: str
    take: Take
    """Returns the parts with a step less of it, the same when there is none left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitResult:
    """Parts that fit, and what it took."""

    parts: PromptParts
    cut: tuple[str, ...]
    """Names of what was left out or shortened, in order."""


def fit(parts: PromptParts, length: Callable[[PromptParts], int], max_chars: int) -> FitResult:
    """Return `parts` without what there is no room for.

    Args:
        parts: Everything there is.
        length: Characters of the prompt that parts make.
        max_chars: Room.
    """
    names: list[str] = []
    size = length(parts)
    for cut in CUTS:
        while size > max_chars:
            fewer = cut.take(parts)
            if fewer == parts:
                break
            parts, size = fewer, length(fewer)
            names.append(cut.name)
    for squeeze in _SQUEEZES:
        if size <= max_chars:
            break
        fewer = squeeze.shorten(parts, size - max_chars)
        if fewer != parts:
            parts, size = fewer, length(fewer)
            names.append(squeeze.name)
    return FitResult(parts=parts, cut=tuple(dict.fromkeys(names)))


def _without_code_of_inspirations(parts: PromptParts) -> PromptParts:
    return replace(parts, inspirations=tuple(replace(view, text="") for view in parts.inspirations))


def _without_materials(parts: PromptParts) -> PromptParts:
    return replace(parts, materials=parts.materials[:-1])


def _with_a_lesson_less(parts: PromptParts) -> PromptParts:
    return replace(parts, lessons=parts.lessons[:-1]) if len(parts.lessons) > 1 else parts


def _with_a_sibling_less(parts: PromptParts) -> PromptParts:
    return replace(parts, siblings=parts.siblings[1:]) if len(parts.siblings) > 1 else parts


def _without_lessons(parts: PromptParts) -> PromptParts:
    return replace(parts, lessons=())


def _with_log(max_chars: int) -> Take:
    def take(parts: PromptParts) -> PromptParts:
        if parts.parent is None:
            return parts
        log = clip(parts.parent.log, max_chars) if max_chars else ""
        return replace(parts, parent=replace(parts.parent, log=log))

    return take


def _with_few_findings(parts: PromptParts) -> PromptParts:
    """Keep the first findings of what passed; of a failure only its errors."""

    def few(view: CandidateView | None) -> CandidateView | None:
        return view and replace(view, findings=view.findings[:_FEW_FINDINGS])

    return replace(parts, side_findings=(), parent=few(parts.parent), partner=few(parts.partner))


def _without_profiles(parts: PromptParts) -> PromptParts:
    def bare(view: CandidateView | None) -> CandidateView | None:
        return view and replace(view, profile=())

    return replace(parts, parent=bare(parts.parent), partner=bare(parts.partner))


def _without_section(name: str) -> Take:
    return lambda parts: replace(parts, sections=replace(parts.sections, **{name: ""}))


def _without_excerpts(parts: PromptParts) -> PromptParts:
    return replace(
        parts,
        diagnoses=tuple(
            replace(d, findings=tuple(replace(view, excerpt="") for view in d.findings))
            for d in parts.diagnoses
        ),
    )


CUTS: Final = (
    Cut(name="code of inspirations", take=_without_code_of_inspirations),
    Cut(name="lessons beyond the first", take=_with_a_lesson_less),
    Cut(name="middle of the log", take=_with_log(_SHORT_LOG_CHARS)),
    Cut(name="lesser findings", take=_with_few_findings),
    Cut(name="worked example", take=lambda parts: replace(parts, worked_example="")),
    Cut(name="building blocks", take=lambda parts: replace(parts, blocks="")),
    Cut(name="strategies", take=_without_section("strategies")),
    Cut(name="inspirations", take=lambda parts: replace(parts, inspirations=())),
    Cut(name="pitfalls", take=_without_section("pitfalls")),
    Cut(name="analysis", take=_without_section("analysis")),
    Cut(name="philosophy", take=_without_section("philosophy")),
    Cut(name="profile", take=_without_profiles),
    Cut(name="code to start from", take=_without_materials),
    Cut(
        name="names of further workloads",
        take=lambda parts: replace(parts, workloads=parts.workloads[:1]),
    ),
    Cut(name="siblings beyond the newest", take=_with_a_sibling_less),
    Cut(name="source beside findings", take=_without_excerpts),
    Cut(name="siblings", take=lambda parts: replace(parts, siblings=())),
    Cut(name="lessons", take=_without_lessons),
    Cut(name="log", take=_with_log(0)),
)
"""In the order in which they are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Squeeze:
    """A text that may lose its middle."""

    name: str
    shorten: Callable[[PromptParts, int], PromptParts]
    """Takes the parts and by how many characters they are too long."""


def _shorter(text: str, excess: int) -> str:
    return clip(text, max(_LEAST_TEXT_CHARS, len(text) - excess))


def _shorter_partner(parts: PromptParts, excess: int) -> PromptParts:
    partner = parts.partner
    if partner is None:
        return parts
    return replace(parts, partner=_with_less_code(partner, excess, is_edited=False))


def _shorter_parent(parts: PromptParts, excess: int) -> PromptParts:
    parent = parts.parent
    if parent is None:
        return parts
    is_edited = parts.operator is not Operator.COMBINE
    return replace(parts, parent=_with_less_code(parent, excess, is_edited=is_edited))


def _with_less_code(view: CandidateView, excess: int, *, is_edited: bool) -> CandidateView:
    whole = len(view.source.device_code) + len(view.source.plan)
    room = max(_LEAST_CODE_CHARS, whole - excess - _NOTE_CHARS)
    if room >= whole:
        return view
    text = source_text(view.source, room, view.meant_lines, is_edited=is_edited)
    return replace(view, text=text, is_whole=False)


def _shorter_names(parts: PromptParts, excess: int) -> PromptParts:
    return replace(
        parts,
        workloads=tuple(
            replace(view, names=_shorter(view.names, excess)) for view in parts.workloads
        ),
    )


_SQUEEZES: Final = (
    _Squeeze(
        name="middle of the reference",
        shorten=lambda parts, excess: replace(parts, reference=_shorter(parts.reference, excess)),
    ),
    _Squeeze(
        name="middle of the instructions",
        shorten=lambda parts, excess: replace(
            parts, instructions=_shorter(parts.instructions, excess)
        ),
    ),
    _Squeeze(name="middle of the name table", shorten=_shorter_names),
    _Squeeze(name="functions of the partner's code", shorten=_shorter_partner),
    _Squeeze(name="functions of the parent's code", shorten=_shorter_parent),
)
"""The last resort: the reference first, since a head and a tail of it still tell what it is."""
