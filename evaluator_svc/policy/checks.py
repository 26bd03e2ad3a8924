"""Makes one check of a verdict from the findings of the rules for each text."""

from collections.abc import Iterable
from typing import Final

from evaluator_svc.policy.rule import RuleClass, Subject
from evaluator_svc.policy.rules import RULES, rule_of
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.finding import Figure, Finding
from kernel_foundry.domain.language import Language

_KINDS: Final = {
    Subject.SOURCE: CheckKind.SOURCE_POLICY,
    Subject.PLAN: CheckKind.PLAN_POLICY,
    Subject.OBJECT: CheckKind.OBJECT_POLICY,
}


def policy_checks(
    findings: Iterable[Finding], language: Language, *subjects: Subject
) -> tuple[Check, ...]:
    """Return one check for each text; measured rules belong to other checks.

    Args:
        findings: What the rules found; findings of no rule of theirs are left out.
        language: Of the candidate.
        subjects: What was looked at: source, plan, object.
    """
    known = {rule.id for rule in RULES}
    ids = {finding.rule for finding in findings} & known
    return tuple(_check(ids, language, subject) for subject in subjects)


def _check(found: set[str], language: Language, subject: Subject) -> Check:
    ids = sorted(rule for rule in found if rule_of(rule).subject is subject)
    classes = [rule_of(rule).rule_class for rule in ids]
    if RuleClass.REJECT in classes:
        result = CheckResult.FAILED
    elif RuleClass.SUSPECT in classes:
        result = CheckResult.SUSPECT
    else:
        result = CheckResult.PASSED
    rule_count = sum(r.subject is subject and r.is_for(language) for r in RULES)
    return Check(
        kind=_KINDS[subject],
        result=result,
        figures=(Figure(name="rule_count", value=float(rule_count)),),
        note=", ".join(ids),
    )
