"""What a candidate may not do: rules as data, and what matches them in source and plan.

On a CPU device a kernel is native code of the process that launches it, so whatever reaches host
functions is refused by what the compiler produced, whatever the source looks like; the source
check keeps files out of the compiler. On a GPU nothing of the host is in reach, but what a module
remembers from call to call is, and is refused. Neither is a sandbox: a kernel may still write
through a forged pointer, which is why it runs in a locked process of its own.
"""

from evaluator_svc.policy.checks import policy_checks
from evaluator_svc.policy.number_formats import ObjectFacts, narrow_findings
from evaluator_svc.policy.rule import PolicyRule, RuleClass, Subject
from evaluator_svc.policy.rules import RULES

__all__ = [
    "RULES",
    "ObjectFacts",
    "PolicyRule",
    "RuleClass",
    "Subject",
    "narrow_findings",
    "policy_checks",
]
