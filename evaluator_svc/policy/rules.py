"""The whole table of rules.

Rules stay as they are once they have found something: records name them by id.
"""

from typing import Final

from evaluator_svc.policy.measured_rules import MEASURED_RULES
from evaluator_svc.policy.object_rules import OBJECT_RULES
from evaluator_svc.policy.plan_rules import PLAN_RULES
from evaluator_svc.policy.rule import PolicyRule
from evaluator_svc.policy.source_rules import SOURCE_RULES

RULES: Final[tuple[PolicyRule, ...]] = (
    *SOURCE_RULES,
    *PLAN_RULES,
    *OBJECT_RULES,
    *MEASURED_RULES,
)

_BY_ID: Final = {rule.id: rule for rule in RULES}


def rule_of(rule_id: str) -> PolicyRule:
    """Return a rule by its id.

    Raises:
        KeyError: there is none.
    """
    return _BY_ID[rule_id]
