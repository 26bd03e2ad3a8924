"""Holds device code against its rules before the compiler sees it.

Looks at the text as the compiler's first phases leave it. A message quotes the candidate's own
words only, never a file.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from evaluator_svc.policy.directives import directive_violations
from evaluator_svc.policy.finding import MAX_FINDINGS, rule_finding
from evaluator_svc.policy.lexemes import read
from evaluator_svc.policy.limits import MAX_SOURCE_CHARACTERS
from evaluator_svc.policy.reading import control_character, hidden_character
from evaluator_svc.policy.rule import RuleClass
from evaluator_svc.policy.rules import rule_of
from evaluator_svc.policy.source_patterns import LOOSE_SPLICE, pattern_violations
from evaluator_svc.policy.violation import Violation
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.language import Language


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """Text after which nothing can be read reliably."""

    rule: str
    message: str
    hint: str
    line: int | None = None


def check_source(device_code: str, language: str) -> tuple[Finding, ...]:
    """Return the rules' findings in device code; it may be compiled if none is an error.

    Args:
        device_code: The candidate's source as written.
        language: A `Language` value.
    """
    odd = _before_reading(device_code)
    if odd is not None:
        return (rule_finding(odd.rule, odd.message, odd.hint, odd.line),)
    text = read(device_code)
    # Both change where literals end, and so what is a comment: the reading below would be void.
    for offset, rule, what in (
        (text.raw_string, "source.raw_string", "raw strings"),
        (text.joined.find("??/"), "source.digraph", "trigraphs"),
    ):
        if offset >= 0:
            return (rule_finding(rule, f"{what} are not allowed", "do without", text.line(offset)),)
    chosen = Language(language)
    found = (*directive_violations(text, chosen), *pattern_violations(text, chosen))
    return tuple(
        rule_finding(v.rule, v.message, v.hint, None if v.offset is None else text.line(v.offset))
        for v in _chosen(found)
    )


def _before_reading(code: str) -> _Unreadable | None:
    if len(code) > MAX_SOURCE_CHARACTERS:
        message = f"{len(code)} characters; at most {MAX_SOURCE_CHARACTERS} are read"
        return _Unreadable("source.size", message, "")
    control = control_character(code)
    if control >= 0:
        message = f"the source holds the control character {code[control]!r}"
        line = _line(code, control)
        return _Unreadable("source.control_character", message, "write plain text", line)
    hidden = hidden_character(code)
    if hidden >= 0:
        message = "the source contains a character that people cannot see"
        return _Unreadable("source.hidden_text", message, "remove it", _line(code, hidden))
    loose = LOOSE_SPLICE.search(code)
    if loose is not None:
        message = "blanks after a line's last backslash are not allowed"
        hint = "end the line with the backslash"
        return _Unreadable("source.splice", message, hint, _line(code, loose.start()))
    return None


def _line(code: str, offset: int) -> int:
    return code.count("\n", 0, offset) + 1


def _chosen(found: tuple[Violation, ...]) -> Iterator[Violation]:
    """Iterate over what is reported: what refuses first, by place; of the rest each rule once."""
    in_order = sorted(found, key=lambda v: -1 if v.offset is None else v.offset)
    refused = [v for v in in_order if rule_of(v.rule).rule_class is RuleClass.REJECT]
    yield from refused[:MAX_FINDINGS]
    seen = {v.rule for v in refused}
    for violation in in_order:
        if violation.rule not in seen:
            seen.add(violation.rule)
            yield violation
