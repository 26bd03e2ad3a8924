"""The table of rules is whole, documented, and what a verdict's checks are made of."""

import re
from pathlib import Path

from evaluator_svc.languages import BACKENDS
from evaluator_svc.policy import RULES, RuleClass, Subject, narrow_findings, policy_checks
from evaluator_svc.policy.finding import rule_finding
from evaluator_svc.policy.rule import PolicyRule
from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.finding import Severity
from kernel_foundry.domain.language import Language

DOCUMENT = Path(__file__).parents[2] / "docs" / "policy.md"
EVALUATOR = Path(__file__).parents[2] / "evaluator_svc"
TEXTS = (Subject.SOURCE, Subject.PLAN, Subject.OBJECT)
NAMED = re.compile(rf'"((?:{"|".join(Subject)})\.[a-z_]+)"')
ROW = re.compile(r"^\| `([a-z_.]+)` \| (\w+) \| (\w+) \| (.+) \| (.+) \| (.+) \|$", re.M)


def test_ids_are_unique_and_begin_with_the_subject() -> None:
    ids = [rule.id for rule in RULES]

    assert len(set(ids)) == len(ids)
    assert all(
        re.fullmatch(rf"{rule.subject.value}\.[a-z_]+", rule.id) is not None for rule in RULES
    )


def test_records_of_languages_name_rules_of_some_languages() -> None:
    named = {rule for backend in BACKENDS.values() for rule in backend.rules}

    assert named == {rule.id for rule in RULES if not rule.is_for_every_language}


def test_every_rule_says_what_why_and_what_passes() -> None:
    assert all(rule.catches and rule.why and rule.honest_use for rule in RULES)


def test_the_document_holds_exactly_these_rules() -> None:
    """A row of `docs/policy.md` is a rule: change both, or neither."""
    expected = [
        (
            rule.id,
            rule.rule_class.value,
            _languages(rule),
            *(text.replace("|", "\\|") for text in (rule.catches, rule.why, rule.honest_use)),
        )
        for rule in RULES
    ]

    assert ROW.findall(DOCUMENT.read_text(encoding="utf-8")) == expected


def _languages(rule: PolicyRule) -> str:
    if rule.is_for_every_language:
        return "both"
    return ", ".join(language.value for language in BACKENDS if rule.is_for(language))


def test_every_rule_that_a_finding_names_is_in_the_table() -> None:
    """Those of what is measured are named where they are found, and each of them is."""
    named = set[str]()
    for path in EVALUATOR.rglob("*.py"):
        if path.name != "request_limits.py":  # it names fields of requests
            named |= set(NAMED.findall(path.read_text(encoding="utf-8")))
    measured = {rule.id for rule in RULES if rule.subject not in TEXTS}

    assert named - {rule.id for rule in RULES} == set()
    assert measured <= named


def test_checks_follow_from_the_worst_class_found() -> None:
    refused = rule_finding("source.include", "no")
    suspect = rule_finding("plan.address", "odd")
    note = rule_finding("object.sleep", "so")
    checks = policy_checks((refused, suspect, note), Language.CUDA, *TEXTS)

    assert [(c.kind, c.result, c.note) for c in checks] == [
        (CheckKind.SOURCE_POLICY, CheckResult.FAILED, "source.include"),
        (CheckKind.PLAN_POLICY, CheckResult.SUSPECT, "plan.address"),
        (CheckKind.OBJECT_POLICY, CheckResult.PASSED, "object.sleep"),
    ]


def test_checks_count_the_rules_of_the_language() -> None:
    (check,) = policy_checks((), Language.SYCL, Subject.OBJECT)
    figures = {figure.name: figure.value for figure in check.figures}

    assert check.result is CheckResult.PASSED
    assert figures["rule_count"] == sum(
        r.subject is Subject.OBJECT and r.is_for(Language.SYCL) for r in RULES
    )


def test_narrow_formats_are_reported_where_the_task_has_none() -> None:
    (finding,) = narrow_findings(("TF32", "float16"), ("TF32",))

    assert (finding.rule, finding.severity) == ("object.narrow_float", Severity.INFO)
    assert narrow_findings(("float16",), ("float16", "bfloat16")) == ()


def test_there_are_rules_of_every_class_for_every_text() -> None:
    found = {(rule.subject, rule.rule_class) for rule in RULES if rule.subject in TEXTS}

    assert found == {(subject, verdict) for subject in TEXTS for verdict in RuleClass}
