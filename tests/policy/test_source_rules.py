"""Every rule for device code, with what it finds and what looks alike and passes."""

import pytest

from evaluator_svc.policy import RULES, RuleClass, Subject
from evaluator_svc.policy.rules import rule_of
from evaluator_svc.policy.source import check_source
from kernel_foundry.domain.finding import FindingKind, Severity
from tests.policy.source_cases import SOURCE_CASES, SourceCase

SEVERITIES = {
    RuleClass.REJECT: (FindingKind.POLICY, Severity.ERROR),
    RuleClass.SUSPECT: (FindingKind.SUSPICION, Severity.WARNING),
    RuleClass.NOTE: (FindingKind.POLICY, Severity.INFO),
}

FOUND = [(case, code) for case in SOURCE_CASES for code in case.found]
PASSES = [(case, code) for case in SOURCE_CASES for code in case.passes]


@pytest.mark.parametrize(("case", "code"), FOUND, ids=lambda v: getattr(v, "rule", None))
def test_what_a_rule_catches_names_the_rule(case: SourceCase, code: str) -> None:
    found = {f.rule: f for f in check_source(code, case.language)}

    assert case.rule in found
    expected = SEVERITIES[rule_of(case.rule).rule_class]
    assert (found[case.rule].kind, found[case.rule].severity) == expected


@pytest.mark.parametrize(("case", "code"), PASSES, ids=lambda v: getattr(v, "rule", None))
def test_honest_look_alikes_pass(case: SourceCase, code: str) -> None:
    findings = check_source(code, case.language)

    assert case.rule not in [f.rule for f in findings]
    assert [f.rule for f in findings if f.severity is not Severity.INFO] == []


def test_every_rule_has_cases() -> None:
    rules = {rule.id for rule in RULES if rule.subject is Subject.SOURCE}

    assert {case.rule for case in SOURCE_CASES} == rules
    assert [case.rule for case in SOURCE_CASES if len(case.passes) < 3] == []


def test_lines_are_those_of_the_source() -> None:
    code = "int a;\n#define B \\\n  2\nfloat* p = (float*)0x1000;\n"

    assert [f.line for f in check_source(code, "sycl")] == [4]


@pytest.mark.parametrize(
    "piece",
    ["(", "__attribute__((a", "[[a", "while(", "extern ", "{1,", '"', "// dear a a ", "##", "#\n"],
)
def test_hostile_text_costs_no_more_than_its_length(piece: str) -> None:
    """A quarter of a million characters: what grows with their square never ends."""
    check_source((piece * (1 << 18))[: 1 << 18], "cuda")
