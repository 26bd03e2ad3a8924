"""Writes lessons from the records of a transition: what was seen, what was changed, what it did.

Everything in a lesson was measured or is in the sources.
"""

import math
from collections.abc import Iterator
from typing import Final

from generator_svc.experience.concepts import identifiers, known_concepts
from generator_svc.experience.source_change import SourceChange, change_between, does_the_same
from generator_svc.experience.transition import (
    LogSpeedup,
    ObservedTransition,
    TransitionKind,
    kind_of,
    log_speedup,
    moved_as_asked,
)
from generator_svc.held_out import held_out_of
from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.finding import OF_THE_MOMENT, Finding, FindingKind, Severity, blamed
from kernel_foundry.domain.lesson import MAX_EXCERPT_CHARS, Lesson, LessonOrigin
from kernel_foundry.domain.measures import DIMENSIONS, Measures
from kernel_foundry.plan.source_text import strip_comments

_MOST_FINDINGS: Final = 3
_OF_THE_MEASUREMENT: Final = (
    FindingKind.NOISY_TIMING,
    FindingKind.THROTTLED,
    FindingKind.TOOL,
    *OF_THE_MOMENT,
)
"""Findings that no change of a kernel could mend."""
_MAX_MESSAGE_CHARS: Final = 140
_MAX_HINT_CHARS: Final = 350


def write_lesson(transition: ObservedTransition) -> Lesson | None:
    """Return the lesson of a transition, or None."""
    said, parent = kind_of(transition), transition.parent
    if said is TransitionKind.NOTHING or parent is None:
        return None
    child = transition.evaluation
    if does_the_same(parent.candidate.source, transition.child.source):
        return None  # whatever made the difference, it is not in the sources
    change = change_between(parent.candidate.source, transition.child.source)
    speedup = log_speedup(parent.evaluation, child)
    # A later prompt for the same task must not tell what this one did not.
    held_out = held_out_of(transition.request.task, transition.request.admission)
    seen = held_out.redacted(_seen(parent.evaluation, child, said), parent.evaluation)
    is_repair = said is TransitionKind.REPAIRED
    island = transition.request.selection.island
    return Lesson(
        symptom=_symptom(transition, parent.evaluation, seen),
        move=" ".join(_move(transition, parent, said, change, speedup)),
        language=transition.child.source.language,
        findings=tuple(dict.fromkeys(finding.kind for finding in seen)),
        experts=() if is_repair or not island else (island,),
        device=transition.request.admission.device.architecture,
        before=None if is_repair else parent.measures,
        after=None if is_repair else child.measures,
        # What did not pay is no code to start from.
        excerpt="" if said is TransitionKind.REFUTED else change.excerpt(MAX_EXCERPT_CHARS),
        source=f"run {transition.run}, {transition.child.digest[:12]}",
        origin=LessonOrigin.LEARNT,
        effect=speedup.mean if speedup else 0.0,
        use_count=1,
    )


def _seen(parent: Evaluation, child: Evaluation, said: TransitionKind) -> tuple[Finding, ...]:
    """Return the kinds of the parent's findings, first those that the child no longer has."""
    found = tuple(f for f in parent.findings if f.kind not in _OF_THE_MEASUREMENT)
    if said is TransitionKind.REPAIRED:
        return blamed(found)[:_MOST_FINDINGS]
    left: set[FindingKind] = {finding.kind for finding in child.findings}
    telling = [f for f in found if f.severity is not Severity.INFO]
    ordered = sorted(telling or found, key=lambda finding: finding.kind in left)
    return tuple(ordered[:_MOST_FINDINGS])


def _symptom(transition: ObservedTransition, parent: Evaluation, seen: tuple[Finding, ...]) -> str:
    task = transition.request.task.name.replace("_", " ")
    ended = "passes" if parent.passed else f"ends as {parent.outcome.value.replace('_', ' ')}"
    messages = "; ".join(_clip(finding.message, _MAX_MESSAGE_CHARS) for finding in seen)
    return f"A kernel for {task} {ended}{': ' if messages else '.'}{messages}"


def _move(
    transition: ObservedTransition,
    parent: Elite,
    said: TransitionKind,
    change: SourceChange,
    speedup: LogSpeedup | None,
) -> Iterator[str]:
    """Yield the sentences of what was changed and what that did."""
    hint = transition.request.selection.hint
    what = _constructs(parent.candidate.source, transition.child.source)
    lines = f"{change.added} lines new or changed, {change.removed} gone"
    match said:
        case TransitionKind.REPAIRED:
            yield f"This mended it: {what} ({lines})."
        case TransitionKind.FASTER:
            yield f"This paid: {what} ({lines})."
        case _:
            yield f"This did not pay here: {what} ({lines})."
    if hint and said is not TransitionKind.REPAIRED and moved_as_asked(transition):
        yield f"The direction was: {_clip(hint, _MAX_HINT_CHARS)}"
    if speedup is not None:
        yield _measured(speedup)
    reached = transition.evaluation.measures
    if said is not TransitionKind.REPAIRED and reached is not None and reached != parent.measures:
        yield f"It moved {_levels(parent.measures, reached)}."


def _constructs(parent: KernelSource, child: KernelSource) -> str:
    """Return in words the constructs that only one of the two has."""
    before, after = (identifiers(strip_comments(x.device_code)) for x in (parent, child))
    concepts = known_concepts()
    old, new = concepts.in_code(before).keys(), concepts.in_code(after).keys()
    parts = [("takes up", new - old), ("gives up", old - new)]
    named = [f"it {verb} {_list(names)}" for verb, names in parts if names]
    if parent.device_code == child.device_code:
        named.append("only the launch plan differs")
        return "; ".join(named)
    named = named or ["the same constructs in another order"]
    if parent.plan != child.plan:
        named.append("the launch plan changes too")
    return "; ".join(named)


def _measured(speedup: LogSpeedup) -> str:
    if speedup.mean >= 0.0:
        side, ends = "fast", (speedup.mean, speedup.lower, speedup.upper)
    else:
        side, ends = "slow", (-speedup.mean, -speedup.upper, -speedup.lower)
    mean, least, most = (math.exp(end) for end in ends)
    return (
        f"Measured: {mean:.2f} times as {side} as its parent (between {least:.2f} and {most:.2f})."
    )


def _levels(before: Measures, after: Measures) -> str:
    moves = zip(DIMENSIONS, before.cell, after.cell, strict=True)
    return ", ".join(f"{name} from {old} to {new}" for name, old, new in moves if old != new)


def _list(names: set[str]) -> str:
    return ", ".join(sorted(name.replace("_", " ") for name in names))


def _clip(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
