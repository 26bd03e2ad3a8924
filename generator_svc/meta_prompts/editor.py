"""The editor: what is known of guidance becomes a prompt that asks for better guidance.

Made of real records alone: how proposals under it ended, what they gained, what was found, and an
example or two. The texts are templates under `prompts/meta/`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import jinja2

from generator_svc.markdown import clip, fenced, one_item
from generator_svc.meta_prompts import records as kept
from generator_svc.meta_prompts.records import PromptRecord
from generator_svc.meta_prompts.section_edits import MAX_EDITS
from generator_svc.meta_prompts.sections import MAX_SECTION_CHARS, SECTION_NAMES, Sections
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.exchange import ChatMessage
from kernel_foundry.domain.finding import Finding, errors_first
from kernel_foundry.domain.language import Language
from kernel_foundry.languages import language_named

_MAX_CODE_CHARS: Final = 4_000
_MAX_FINDING_CHARS: Final = 600
_MAX_FAILURES: Final = 2
_MAX_FINDINGS: Final = 4
_MAX_FINDING_KINDS: Final = 12
_MAX_REPEATED_REPLY_CHARS: Final = 6_000
_MAX_TRIED_CHARS: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRow:
    """A line of a table in the prompt."""

    name: str
    count: int
    passed: int = 0
    mean_gain: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleView:
    """One proposal as the prompt shows it."""

    move: str
    gain: float
    kind: str
    findings: tuple[str, ...]
    code: str


def editing_prompt(
    language: Language,
    sections: Sections,
    records: Sequence[PromptRecord],
    tried: Iterable[str] = (),
) -> tuple[ChatMessage, ...]:
    """Return the messages that ask for edits of `sections`.

    Args:
        language: What the guidance is on.
        sections: The guidance.
        records: Of proposals made under it, at least one.
        tried: Diagnoses behind edits of it that did not pay.
    """
    best = kept.best(records)
    user = {
        "sections": [(name, getattr(sections, name)) for name in SECTION_NAMES],
        "record_count": len(records),
        "mean_gain": sum(r.gain for r in records) / len(records),
        "outcomes": _count_rows(records, lambda r: r.outcome.value),
        "moves": _count_rows(records, lambda r: r.operator.value),
        "findings": _finding_rows(records),
        "best": _example(best) if best is not None else None,
        "failures": [_example(r) for r in kept.typical_failures(records, _MAX_FAILURES)],
        "tried": [clip(one_item(reason), _MAX_TRIED_CHARS) for reason in tried],
        "max_edits": MAX_EDITS,
    }
    system = {
        "language_name": language_named(language.value).title,
        "max_section_chars": MAX_SECTION_CHARS,
    }
    return (
        ChatMessage(role="system", content=_render("editor_system.md.j2", system)),
        ChatMessage(role="user", content=_render("editor.md.j2", user)),
    )


def asked_again(reply: str, reason: str) -> tuple[ChatMessage, ...]:
    """Return the messages that are added after edits that cannot be applied."""
    # Providers refuse empty messages.
    said = clip(reply, _MAX_REPEATED_REPLY_CHARS) or "(an empty reply)"
    again = _render("editor_retry.md.j2", {"reason": reason.rstrip(".")})
    return (ChatMessage(role="assistant", content=said), ChatMessage(role="user", content=again))


def _count_rows(
    records: Sequence[PromptRecord], key: Callable[[PromptRecord], str]
) -> list[CountRow]:
    """Return one row for each value of `key`, the commonest first."""
    groups: dict[str, list[PromptRecord]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return [
        CountRow(
            name=name,
            count=len(group),
            passed=sum(r.outcome is EvaluationOutcome.PASSED for r in group),
            mean_gain=sum(r.gain for r in group) / len(group),
        )
        for name, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def _finding_rows(records: Sequence[PromptRecord]) -> list[CountRow]:
    counts = Counter(kind.value for r in records for kind in {f.kind for f in r.findings})
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [CountRow(name=name, count=count) for name, count in ranked[:_MAX_FINDING_KINDS]]


def _example(record: PromptRecord) -> ExampleView:
    code = clip(record.held_out.without_names(record.source.device_code), _MAX_CODE_CHARS)
    return ExampleView(
        move=record.operator.value,
        gain=record.gain,
        kind=kept.failure_kind(record),
        findings=tuple(_finding_text(f) for f in errors_first(record.findings)[:_MAX_FINDINGS]),
        code=fenced(code, record.source.language.value),
    )


def _finding_text(finding: Finding) -> str:
    hint = f" Hint: {finding.hint}" if finding.hint else ""
    return clip(one_item(f"{finding.kind.value}: {finding.message}{hint}"), _MAX_FINDING_CHARS)


def _render(name: str, values: Mapping[str, object]) -> str:
    return _templates().get_template(name).render(values).strip() + "\n"


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("generator_svc", "prompts/meta"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
